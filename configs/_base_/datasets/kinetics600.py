# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
# Kinetics-600 as Kinetics-400, in the folders that mmaction2 makes.
_base_ = 'kinetics400.py'

data_root = 'data/kinetics600'
ann_file_train = 'kinetics600_train_list_videos.txt'
ann_file_val = 'kinetics600_val_list_videos.txt'
num_classes = 600
metainfo = dict(classes=f'{data_root}/label_map.txt')

dataset = dict(
    data_root=data_root, metainfo=metainfo, num_classes=num_classes)
train_dataloader = dict(dataset=dict(ann_file=ann_file_train, **dataset))
val_dataloader = dict(dataset=dict(ann_file=ann_file_val, **dataset))
test_dataloader = val_dataloader
