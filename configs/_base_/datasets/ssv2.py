# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
# Something-Something v2, in the folders that mmaction2's tools/data/sthv2
# makes. label_map.txt (one class name a line) is optional.
dataset_type = 'GuardedVideoDataset'
data_root = 'data/sthv2'
video_dir = 'videos'
ann_file_train = 'sthv2_train_list_videos.txt'
ann_file_val = 'sthv2_val_list_videos.txt'
num_classes = 174
metainfo = dict(classes=f'{data_root}/label_map.txt')

file_client_args = dict(io_backend='disk')
# As released (linear video transformer, XViT), here and in testing. No Flip:
# many classes name a direction.
train_pipeline = [
    dict(type='DecordInit', **file_client_args),
    dict(type='SegmentSampleFrames', clip_len=16),
    dict(type='DecordDecode'),
    # Of whole frames, as released.
    dict(type='AutoAugment', policy='v0', interpolation='random'),
    dict(type='RandomRescale', scale_range=(256, 320)),
    dict(type='RandomCrop', size=224),
    # Mid gray, its default, is the mean that the preprocessor subtracts.
    dict(type='RandomErasing', erase_prob=0.5),
    dict(type='FormatShape', input_format='NCTHW'),
    dict(type='PackActionInputs')
]
val_pipeline = [
    dict(type='DecordInit', **file_client_args),
    dict(type='SegmentSampleFrames', clip_len=16, test_mode=True),
    dict(type='DecordDecode'),
    dict(type='Resize', scale=(-1, 224)),
    dict(type='CenterCrop', crop_size=224),
    dict(type='FormatShape', input_format='NCTHW'),
    dict(type='PackActionInputs')
]
test_pipeline = [
    dict(type='DecordInit', **file_client_args),
    dict(
        type='SegmentSampleFrames',
        clip_len=16,
        num_clips=2,
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
    data_prefix=dict(video=video_dir),
    metainfo=metainfo,
    num_classes=num_classes)
# 4 on each of 8 GPUs: the paper's batch of 32.
train_dataloader = dict(
    batch_size=4,
    num_workers=8,
    persistent_workers=True,
    sampler=dict(type='DefaultSampler', shuffle=True),
    dataset=dict(
        ann_file=ann_file_train,
        pipeline=train_pipeline,
        **dataset))
val_dataloader = dict(
    batch_size=4,
    num_workers=8,
    persistent_workers=True,
    sampler=dict(type='DefaultSampler', shuffle=False),
    dataset=dict(
        ann_file=ann_file_val,
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
        pipeline=test_pipeline,
        test_mode=True,
        **dataset))

val_evaluator = dict(type='AccMetric')
test_evaluator = val_evaluator
