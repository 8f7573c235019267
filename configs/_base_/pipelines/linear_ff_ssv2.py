# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0. Clips of
# Something-Something v2, as in the released code of the linear video
# transformer and XViT. Clips are not flipped because many classes name a
# direction.
num_frames = 16
img_size = 224

file_client_args = dict(io_backend='disk')
train_pipeline = [
    dict(type='DecordInit', **file_client_args),
    dict(type='SegmentSampleFrames', clip_len=num_frames),
    dict(type='DecordDecode'),
    # Applies to whole frames, as released.
    dict(type='AutoAugment', policy='v0', interpolation='random'),
    dict(type='RandomRescale', scale_range=(256, 320)),
    dict(type='RandomCrop', size=img_size),
    # The default, mid gray, is the mean that the preprocessor subtracts.
    dict(type='RandomErasing', erase_prob=0.5),
    dict(type='FormatShape', input_format='NCTHW'),
    dict(type='PackActionInputs')
]
val_pipeline = [
    dict(type='DecordInit', **file_client_args),
    dict(type='SegmentSampleFrames', clip_len=num_frames, test_mode=True),
    dict(type='DecordDecode'),
    dict(type='Resize', scale=(-1, img_size)),
    dict(type='CenterCrop', crop_size=img_size),
    dict(type='FormatShape', input_format='NCTHW'),
    dict(type='PackActionInputs')
]
test_pipeline = [
    dict(type='DecordInit', **file_client_args),
    dict(
        type='SegmentSampleFrames',
        clip_len=num_frames,
        num_clips=2,
        test_mode=True),
    dict(type='DecordDecode'),
    dict(type='Resize', scale=(-1, img_size)),
    dict(type='ThreeCrop', crop_size=img_size),
    dict(type='FormatShape', input_format='NCTHW'),
    dict(type='PackActionInputs')
]
