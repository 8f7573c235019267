# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
# DualFormer-B on Kinetics-600, from an ImageNet-21k image model. The paper,
# Table 1: top-1 85.2, top-5 96.6 at 4 x 1 views, 1072 G multiply-accumulates
# for the four. The learning rate follows the released code; the paper reports
# the same rate as for Kinetics-400.
_base_ = 'dualformer_base_k400.py'

data_root = 'data/kinetics600'
num_classes = 600
dataset = dict(
    data_root=data_root,
    metainfo=dict(classes=f'{data_root}/label_map.txt'),
    num_classes=num_classes)
train_dataloader = dict(
    dataset=dict(ann_file='kinetics600_train_list_videos.txt', **dataset))
val_dataloader = dict(
    dataset=dict(ann_file='kinetics600_val_list_videos.txt', **dataset))
test_dataloader = val_dataloader

model = dict(cls_head=dict(num_classes=num_classes))

optim_wrapper = dict(optimizer=dict(lr=5e-4))
