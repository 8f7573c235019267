# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
# THUMOS'14 as videos: 200 validation videos for training, 213 test videos. 22
# classes with the background (0) and "Ambiguous" (21). tools/data/prepare.py
# thumos14 writes the lists.
_base_ = 'video_streams.py'

data_root = 'data/thumos14'
num_classes = 22
classes = f'{data_root}/classes.txt'

dataset = dict(
    data_root=data_root,
    data_prefix=dict(video='videos'),
    metainfo=dict(classes=classes),
    num_classes=num_classes,
    ignore_index=21)
train_dataloader = dict(dataset=dict(ann_file='val.csv', **dataset))
val_dataloader = dict(dataset=dict(ann_file='test.csv', **dataset))
test_dataloader = val_dataloader

val_evaluator = dict(type='PerFrameMAP', ignore_index=21)
test_evaluator = dict(type='PerFrameMAP', ignore_index=21, per_class=True)
