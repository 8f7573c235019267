# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
# Clips of Kinetics, as in the released code of the linear video transformer
# and XViT.
num_frames = 16
img_size = 224

file_client_args = dict(io_backend='disk')
train_pipeline = [
    dict(type='DecordInit', **file_client_args),
    # 16 frames, 17 apart, of 256 frames at 30 frames/s.
    dict(type='SlowFastSampleFrames', clip_len=num_frames, frame_interval=16),
    dict(type='DecordDecode'),
    # The released recipes read videos that were resized beforehand.
    dict(type='Resize', scale=(-1, 256)),
    dict(type='AutoAugment', policy='v0', interpolation='random'),
    dict(
        type='MultiScaleCrop',
        input_size=img_size,
        scales=(1, 0.875, 0.75, 0.66),
        random_crop=False,
        max_wh_scale_gap=1,
        num_fixed_crops=13),
    dict(type='Resize', scale=(img_size, img_size), keep_ratio=False),
    dict(type='Flip', flip_ratio=0.5),
    dict(type='FormatShape', input_format='NCTHW'),
    dict(type='PackActionInputs')
]
val_pipeline = [
    dict(type='DecordInit', **file_client_args),
    dict(
        type='SlowFastSampleFrames',
        clip_len=num_frames,
        frame_interval=16,
        num_clips=1,
        test_mode=True),
    dict(type='DecordDecode'),
    dict(type='Resize', scale=(-1, img_size)),
    dict(type='CenterCrop', crop_size=img_size),
    dict(type='FormatShape', input_format='NCTHW'),
    dict(type='PackActionInputs')
]
test_pipeline = [
    dict(type='DecordInit', **file_client_args),
    dict(
        type='SlowFastSampleFrames',
        clip_len=num_frames,
        frame_interval=16,
        num_clips=4,
        test_mode=True),
    dict(type='DecordDecode'),
    dict(type='Resize', scale=(-1, img_size)),
    dict(type='ThreeCrop', crop_size=img_size),
    dict(type='FormatShape', input_format='NCTHW'),
    dict(type='PackActionInputs')
]
