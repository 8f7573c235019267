# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
# Diving-48 V2, in the folders that mmaction2's tools/data/diving48 makes.
_base_ = 'kinetics400.py'

from mmvidattn.utils.config import derive

derive(_base_, data_root='data/diving48', num_classes=48)

video_dir = 'videos'
ann_file_train = 'diving48_train_list_videos.txt'
ann_file_val = 'diving48_val_list_videos.txt'

dataset = dict(data_prefix=dict(video=video_dir))
train_dataloader = dict(dataset=dict(ann_file=ann_file_train, **dataset))
val_dataloader = dict(dataset=dict(ann_file=ann_file_val, **dataset))
test_dataloader = val_dataloader
