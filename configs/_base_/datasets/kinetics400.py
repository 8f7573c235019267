# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
# Kinetics-400, in the folders that mmaction2's tools/data/kinetics makes.
# label_map.txt (one class name per line) is optional. The clips are those of
# the released code of the linear video transformer and XViT; other models
# replace the pipelines.
data_root = 'data/kinetics400'
num_classes = 400
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

dataset = dict(
    type='CheckedVideoDataset',
    data_root=data_root,
    metainfo=dict(classes=f'{data_root}/label_map.txt'),
    num_classes=num_classes)
# 8 clips on each of 8 GPUs.
train_dataloader = dict(
    batch_size=8,
    num_workers=8,
    persistent_workers=True,
    sampler=dict(type='DefaultSampler', shuffle=True),
    dataset=dict(
        ann_file='kinetics400_train_list_videos.txt',
        data_prefix=dict(video='videos_train'),
        pipeline=train_pipeline,
        **dataset))
val_dataloader = dict(
    batch_size=8,
    num_workers=8,
    persistent_workers=True,
    sampler=dict(type='DefaultSampler', shuffle=False),
    dataset=dict(
        ann_file='kinetics400_val_list_videos.txt',
        data_prefix=dict(video='videos_val'),
        pipeline=val_pipeline,
        test_mode=True,
        **dataset))
test_dataloader = dict(
    batch_size=1,
    num_workers=8,
    persistent_workers=True,
    sampler=dict(type='DefaultSampler', shuffle=False),
    dataset=dict(
        ann_file='kinetics400_val_list_videos.txt',
        data_prefix=dict(video='videos_val'),
        pipeline=test_pipeline,
        test_mode=True,
        **dataset))

val_evaluator = dict(type='AccMetric')
test_evaluator = val_evaluator
