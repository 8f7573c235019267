# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
# Kinetics-600 as ViViT reads Kinetics-400.
_base_ = 'kinetics400_vivit.py'

data_root = 'data/kinetics600'
ann_file_train = 'kinetics600_train_list_videos.txt'
ann_file_val = 'kinetics600_val_list_videos.txt'
num_classes = 600
metainfo = dict(classes=f'{data_root}/label_map.txt')

train_dataloader = dict(
    dataset=dict(
        data_root=data_root,
        ann_file=ann_file_train,
        metainfo=metainfo,
        num_classes=num_classes))
val_dataloader = dict(
    dataset=dict(
        data_root=data_root,
        ann_file=ann_file_val,
        metainfo=metainfo,
        num_classes=num_classes))
test_dataloader = val_dataloader
