# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
# Detection of actions on THUMOS'14 from pixels, with one causal network and
# a state of constant size. Not from a paper, and not trained here.
_base_ = [
    '_base_/models/linear_ff_causal_online.py',
    '_base_/datasets/video_streams.py',
    '_base_/schedules/adamw_20e_causal.py', '_base_/default_runtime.py'
]

model = dict(
    backbone=dict(encoder=dict(with_cp=True)),
    cls_head=dict(loss_cls=dict(ignore_index=21)))

# 200 validation videos for training, 213 test videos. 22 classes with the
# background (0) and "Ambiguous" (21). tools/data/prepare.py thumos14 writes
# the lists.
data_root = 'data/thumos14'
num_classes = 22
dataset = dict(
    data_root=data_root,
    data_prefix=dict(video='videos'),
    metainfo=dict(classes=f'{data_root}/classes.txt'),
    num_classes=num_classes,
    ignore_index=21)
train_dataloader = dict(dataset=dict(ann_file='val.csv', **dataset))
val_dataloader = dict(dataset=dict(ann_file='test.csv', **dataset))
test_dataloader = val_dataloader

val_evaluator = dict(type='PerFrameMAP', ignore_index=21)
test_evaluator = dict(type='PerFrameMAP', ignore_index=21, per_class=True)
