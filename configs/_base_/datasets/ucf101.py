# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
# UCF-101, split 1, as Kinetics-400, in the folders that mmaction2's
# tools/data/ucf101 makes.
_base_ = 'kinetics400.py'

data_root = 'data/ucf101'
video_dir = 'videos'
ann_file_train = 'ucf101_train_split_1_videos.txt'
ann_file_val = 'ucf101_val_split_1_videos.txt'
num_classes = 101
metainfo = dict(classes=f'{data_root}/label_map.txt')

dataset = dict(
    data_root=data_root,
    data_prefix=dict(video=video_dir),
    metainfo=metainfo,
    num_classes=num_classes)
train_dataloader = dict(dataset=dict(ann_file=ann_file_train, **dataset))
val_dataloader = dict(dataset=dict(ann_file=ann_file_val, **dataset))
test_dataloader = val_dataloader
