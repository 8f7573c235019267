# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
# XViT on Kinetics-600. The linear video transformer's paper, Table 2: top-1
# 84.5, top-5 96.3 at 1 x 3 views.
_base_ = 'xvit_k400.py'

data_root = 'data/kinetics600'
num_classes = 600
dataset = dict(
    data_root=data_root,
    metainfo=dict(classes=f'{data_root}/label_map.txt'),
    num_classes=num_classes)
_base_.test_pipeline[1].num_clips = 1
train_dataloader = dict(
    dataset=dict(ann_file='kinetics600_train_list_videos.txt', **dataset))
val_dataloader = dict(
    dataset=dict(ann_file='kinetics600_val_list_videos.txt', **dataset))
test_dataloader = dict(
    dataset=dict(
        ann_file='kinetics600_val_list_videos.txt',
        pipeline=_base_.test_pipeline,
        **dataset))

model = dict(
    cls_head=dict(num_classes=num_classes),
    data_preprocessor=dict(blending=dict(num_classes=num_classes)))
