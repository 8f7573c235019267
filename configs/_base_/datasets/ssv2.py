# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
# Something-Something v2, in the folders that mmaction2's tools/data/sthv2
# makes. label_map.txt (one class name per line) is optional.
dataset_type = 'GuardedVideoDataset'
data_root = 'data/sthv2'
video_dir = 'videos'
ann_file_train = 'sthv2_train_list_videos.txt'
ann_file_val = 'sthv2_val_list_videos.txt'
num_classes = 174
metainfo = dict(classes=f'{data_root}/label_map.txt')

dataset = dict(
    type=dataset_type,
    data_root=data_root,
    data_prefix=dict(video=video_dir),
    metainfo=metainfo,
    num_classes=num_classes)
# 4 clips on each of 8 GPUs: the paper's batch of 32.
train_dataloader = dict(
    batch_size=4,
    num_workers=8,
    persistent_workers=True,
    sampler=dict(type='DefaultSampler', shuffle=True),
    dataset=dict(
        ann_file=ann_file_train,
        pipeline=None,
        **dataset))
val_dataloader = dict(
    batch_size=4,
    num_workers=8,
    persistent_workers=True,
    sampler=dict(type='DefaultSampler', shuffle=False),
    dataset=dict(
        ann_file=ann_file_val,
        pipeline=None,
        test_mode=True,
        **dataset))
test_dataloader = dict(
    batch_size=1,
    num_workers=8,
    persistent_workers=True,
    sampler=dict(type='DefaultSampler', shuffle=False),
    dataset=dict(
        ann_file=ann_file_val,
        pipeline=None,
        test_mode=True,
        **dataset))

val_evaluator = dict(type='AccMetric')
test_evaluator = val_evaluator
