# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
# Kinetics-400, in the folders that mmaction2's tools/data/kinetics makes.
# label_map.txt (one class name a line) is optional.
dataset_type = 'GuardedVideoDataset'
data_root = 'data/kinetics400'
video_dir_train = 'videos_train'
video_dir_val = 'videos_val'
ann_file_train = 'kinetics400_train_list_videos.txt'
ann_file_val = 'kinetics400_val_list_videos.txt'
num_classes = 400
metainfo = dict(classes=f'{data_root}/label_map.txt')

# As the linear video transformer and XViT are released. Networks with clips
# of their own replace the pipelines.
file_client_args = dict(io_backend='disk')
train_pipeline = [
    dict(type='DecordInit', **file_client_args),
    # 256 frames at 30 a second, of which 16 are 17 apart.
    dict(type='SlowFastSampleFrames', clip_len=16, frame_interval=16),
    dict(type='DecordDecode'),
    # The released recipes read videos that are made this small beforehand.
    dict(type='Resize', scale=(-1, 256)),
    dict(type='AutoAugment', policy='v0', interpolation='random'),
    dict(
        type='MultiScaleCrop',
        input_size=224,
        scales=(1, 0.875, 0.75, 0.66),
        random_crop=False,
        max_wh_scale_gap=1,
        num_fixed_crops=13),
    dict(type='Resize', scale=(224, 224), keep_ratio=False),
    dict(type='Flip', flip_ratio=0.5),
    dict(type='FormatShape', input_format='NCTHW'),
    dict(type='PackActionInputs')
]
val_pipeline = [
    dict(type='DecordInit', **file_client_args),
    dict(
        type='SlowFastSampleFrames',
        clip_len=16,
        frame_interval=16,
        num_clips=1,
        test_mode=True),
    dict(type='DecordDecode'),
    dict(type='Resize', scale=(-1, 224)),
    dict(type='CenterCrop', crop_size=224),
    dict(type='FormatShape', input_format='NCTHW'),
    dict(type='PackActionInputs')
]
test_pipeline = [
    dict(type='DecordInit', **file_client_args),
    dict(
        type='SlowFastSampleFrames',
        clip_len=16,
        frame_interval=16,
        num_clips=4,
        test_mode=True),
    dict(type='DecordDecode'),
    dict(type='Resize', scale=(-1, 224)),
    dict(type='ThreeCrop', crop_size=224),
    dict(type='FormatShape', input_format='NCTHW'),
    dict(type='PackActionInputs')
]

dataset = dict(
    type=dataset_type,
    data_root=data_root,
    metainfo=metainfo,
    num_classes=num_classes)
# 8 on each of 8 GPUs.
train_dataloader = dict(
    batch_size=8,
    num_workers=8,
    persistent_workers=True,
    sampler=dict(type='DefaultSampler', shuffle=True),
    dataset=dict(
        ann_file=ann_file_train,
        data_prefix=dict(video=video_dir_train),
        pipeline=train_pipeline,
        **dataset))
val_dataloader = dict(
    batch_size=8,
    num_workers=8,
    persistent_workers=True,
    sampler=dict(type='DefaultSampler', shuffle=False),
    dataset=dict(
        ann_file=ann_file_val,
        data_prefix=dict(video=video_dir_val),
        pipeline=val_pipeline,
        test_mode=True,
        **dataset))
test_dataloader = dict(
    batch_size=1,
    num_workers=8,
    persistent_workers=True,
    sampler=dict(type='DefaultSampler', shuffle=False),
    dataset=dict(
        ann_file=ann_file_val,
        data_prefix=dict(video=video_dir_val),
        pipeline=test_pipeline,
        test_mode=True,
        **dataset))

val_evaluator = dict(type='AccMetric')
test_evaluator = val_evaluator
