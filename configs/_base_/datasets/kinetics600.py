# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
# Kinetics-600 as Kinetics-400, in the folders that mmaction2 makes.
_base_ = 'kinetics400.py'

from mmvidattn.utils.config import derive

derive(_base_, data_root='data/kinetics600', num_classes=600)

ann_file_train = 'kinetics600_train_list_videos.txt'
ann_file_val = 'kinetics600_val_list_videos.txt'

train_dataloader = dict(dataset=dict(ann_file=ann_file_train))
val_dataloader = dict(dataset=dict(ann_file=ann_file_val))
test_dataloader = val_dataloader
