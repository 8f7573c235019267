# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
# Clips of LAPS for any dataset: 8 frames spread over 64, as in the released
# code; 5 x 3 views, as in the paper. The released code tests 10 x 3 views.
num_frames = 8
img_size = 224

train_pipeline = [
    dict(type='DecordInit', io_backend='disk'),
    dict(
        type='SpreadSampleFrames',
        clip_len=num_frames,
        frame_interval=8,
        num_clips=1),
    dict(type='DecordDecode'),
    dict(type='RandomRescale', scale_range=(224, 360)),
    dict(type='RandomCrop', size=img_size),
    # Each adjustment applies to one clip in ten.
    dict(
        type='PhotometricJitter',
        prob=0.1,
        brightness=(0.5, 2),
        saturation=(0.5, 3),
        gamma=(0.8, 1.2),
        hue=(-0.5, 0.5)),
    dict(type='Flip', flip_ratio=0.5),
    dict(type='FormatShape', input_format='NCTHW'),
    dict(type='PackActionInputs')
]
val_pipeline = [
    dict(type='DecordInit', io_backend='disk'),
    dict(
        type='SpreadSampleFrames',
        clip_len=num_frames,
        frame_interval=8,
        num_clips=1,
        test_mode=True),
    dict(type='DecordDecode'),
    dict(type='Resize', scale=(-1, img_size)),
    dict(type='CenterCrop', crop_size=img_size),
    dict(type='FormatShape', input_format='NCTHW'),
    dict(type='PackActionInputs')
]
test_pipeline = [
    dict(type='DecordInit', io_backend='disk'),
    dict(
        type='SpreadSampleFrames',
        clip_len=num_frames,
        frame_interval=8,
        num_clips=5,
        test_mode=True),
    dict(type='DecordDecode'),
    dict(type='Resize', scale=(-1, img_size)),
    dict(type='ThreeCrop', crop_size=img_size),
    dict(type='FormatShape', input_format='NCTHW'),
    dict(type='PackActionInputs')
]
