# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
# Moments in Time, in the folders that mmaction2's tools/data/mit makes.
# Version 1; version 2 has 305 classes.
_base_ = 'kinetics400.py'

from mmvidattn.utils.config import derive

derive(_base_, data_root='data/mit', num_classes=339)

video_dir_train = 'videos/training'
video_dir_val = 'videos/validation'
ann_file_train = 'mit_train_list_videos.txt'
ann_file_val = 'mit_val_list_videos.txt'

train_dataloader = dict(
    dataset=dict(
        ann_file=ann_file_train, data_prefix=dict(video=video_dir_train)))
val_dataloader = dict(
    dataset=dict(
        ann_file=ann_file_val, data_prefix=dict(video=video_dir_val)))
test_dataloader = val_dataloader
