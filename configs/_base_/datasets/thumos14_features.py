# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
# THUMOS'14, like TVSeries: 200 validation videos for training, 213 test
# videos. 22 classes with the background (0) and "Ambiguous" (21).
_base_ = 'tvseries_features.py'

data_root = 'data/thumos14'
num_classes = 22
classes = f'{data_root}/classes.txt'

dataset = dict(
    data_root=data_root, metainfo=dict(classes=classes), ignore_index=21)
train_dataloader = dict(dataset=dict(ann_file='val.txt', **dataset))
val_dataloader = dict(dataset=dataset)
test_dataloader = dict(dataset=dataset)

val_evaluator = dict(_delete_=True, type='PerFrameMAP', ignore_index=21)
test_evaluator = dict(
    _delete_=True, type='PerFrameMAP', ignore_index=21, per_class=True)
