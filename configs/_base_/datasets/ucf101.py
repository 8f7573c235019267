# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
# UCF-101, split 1, in the folders that mmaction2's tools/data/ucf101 makes.
_base_ = 'kinetics400.py'

from mmvidattn.utils.config import derive

derive(_base_, data_root='data/ucf101', num_classes=101)

video_dir = 'videos'
ann_file_train = 'ucf101_train_split_1_videos.txt'
ann_file_val = 'ucf101_val_split_1_videos.txt'

dataset = dict(data_prefix=dict(video=video_dir))
train_dataloader = dict(dataset=dict(ann_file=ann_file_train, **dataset))
val_dataloader = dict(dataset=dict(ann_file=ann_file_val, **dataset))
test_dataloader = val_dataloader
