# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
# Kinetics-400, in the folders that mmaction2's tools/data/kinetics makes.
# label_map.txt (one class name per line) is optional.
dataset_type = 'GuardedVideoDataset'
data_root = 'data/kinetics400'
video_dir_train = 'videos_train'
video_dir_val = 'videos_val'
ann_file_train = 'kinetics400_train_list_videos.txt'
ann_file_val = 'kinetics400_val_list_videos.txt'
num_classes = 400
metainfo = dict(classes=f'{data_root}/label_map.txt')

dataset = dict(
    type=dataset_type,
    data_root=data_root,
    metainfo=metainfo,
    num_classes=num_classes)
# 8 clips on each of 8 GPUs.
train_dataloader = dict(
    batch_size=8,
    num_workers=8,
    persistent_workers=True,
    sampler=dict(type='DefaultSampler', shuffle=True),
    dataset=dict(
        ann_file=ann_file_train,
        data_prefix=dict(video=video_dir_train),
        pipeline=None,
        **dataset))
val_dataloader = dict(
    batch_size=8,
    num_workers=8,
    persistent_workers=True,
    sampler=dict(type='DefaultSampler', shuffle=False),
    dataset=dict(
        ann_file=ann_file_val,
        data_prefix=dict(video=video_dir_val),
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
        data_prefix=dict(video=video_dir_val),
        pipeline=None,
        test_mode=True,
        **dataset))

val_evaluator = dict(type='AccMetric')
test_evaluator = val_evaluator
