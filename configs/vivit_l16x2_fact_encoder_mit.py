# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
# ViViT-L/16x2, Model 2, on Moments in Time. The paper, Table 5c: top-1 38.5,
# top-5 64.1; 988 G multiply-accumulates per view.
_base_ = 'vivit_l16x2_fact_encoder_k400.py'

# In the folders that mmaction2's tools/data/mit makes. Version 1; version 2
# has 305 classes.
data_root = 'data/mit'
num_classes = 339
dataset = dict(
    data_root=data_root,
    metainfo=dict(classes=f'{data_root}/label_map.txt'),
    num_classes=num_classes)
train_dataloader = dict(
    dataset=dict(
        ann_file='mit_train_list_videos.txt',
        data_prefix=dict(video='videos/training'),
        **dataset))
val_dataloader = dict(
    dataset=dict(
        ann_file='mit_val_list_videos.txt',
        data_prefix=dict(video='videos/validation'),
        **dataset))
test_dataloader = val_dataloader

model = dict(cls_head=dict(num_classes=num_classes))

optim_wrapper = dict(optimizer=dict(lr=0.25))
_base_.param_scheduler[1].T_max = 7.5
_base_.param_scheduler[1].end = 10
train_cfg = dict(max_epochs=10)
