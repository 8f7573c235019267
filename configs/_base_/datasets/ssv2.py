# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
# Something-Something v2, in the folders that mmaction2's tools/data/sthv2
# makes. label_map.txt (one class name per line) is optional. The clips are
# those of the released code of the linear video transformer and XViT, which
# does not flip them, because many classes name a direction.
data_root = 'data/sthv2'
num_classes = 174
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

dataset = dict(
    type='CheckedVideoDataset',
    data_root=data_root,
    data_prefix=dict(video='videos'),
    metainfo=dict(classes=f'{data_root}/label_map.txt'),
    num_classes=num_classes)
# 4 clips on each of 8 GPUs: the paper's batch of 32.
train_dataloader = dict(
    batch_size=4,
    num_workers=8,
    persistent_workers=True,
    sampler=dict(type='DefaultSampler', shuffle=True),
    dataset=dict(
        ann_file='sthv2_train_list_videos.txt',
        pipeline=train_pipeline,
        **dataset))
val_dataloader = dict(
    batch_size=4,
    num_workers=8,
    persistent_workers=True,
    sampler=dict(type='DefaultSampler', shuffle=False),
    dataset=dict(
        ann_file='sthv2_val_list_videos.txt',
        pipeline=val_pipeline,
        test_mode=True,
        **dataset))
test_dataloader = dict(
    batch_size=1,
    num_workers=8,
    persistent_workers=True,
    sampler=dict(type='DefaultSampler', shuffle=False),
    dataset=dict(
        ann_file='sthv2_val_list_videos.txt',
        pipeline=test_pipeline,
        test_mode=True,
        **dataset))

val_evaluator = dict(type='AccMetric')
test_evaluator = val_evaluator
