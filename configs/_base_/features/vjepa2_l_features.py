# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
# Mean of the tokens of V-JEPA 2 ViT-L, 1024 wide, for clips of 16 frames:
#     mmvidattn extract-features VIDEOS OUT vjepa2_l_features \
#         --checkpoint vjepa2_l --frame-interval 2
model = dict(
    type='Recognizer3D',
    backbone=dict(type='VJEPA2', arch='L', num_frames=16),
    cls_head=dict(type='I3DHead', num_classes=174, in_channels=1024),
    data_preprocessor=dict(
        type='ActionDataPreprocessor',
        mean=[123.675, 116.28, 103.53],
        std=[58.395, 57.12, 57.375],
        format_shape='NCTHW'))
# The sizes of the authors' preprocessor.
test_pipeline = [
    dict(type='DecordInit'),
    dict(type='SampleFrames', clip_len=16, num_clips=1, test_mode=True),
    dict(type='DecordDecode'),
    dict(type='Resize', scale=(-1, 292)),
    dict(type='CenterCrop', crop_size=256),
    dict(type='FormatShape', input_format='NCTHW'),
    dict(type='PackActionInputs')
]
