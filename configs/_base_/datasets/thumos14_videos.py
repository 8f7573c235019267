# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
# THUMOS'14 as videos: 200 validation videos for training, 213 test videos. 22
# classes with the background (0) and "Ambiguous" (21). tools/data/prepare.py
# thumos14 writes the lists.
data_root = 'data/thumos14'
num_classes = 22
classes = f'{data_root}/classes.txt'

dataset = dict(
    type='VideoStreamDataset',
    data_root=data_root,
    data_prefix=dict(video='videos'),
    metainfo=dict(classes=classes),
    num_classes=num_classes,
    frame_rate=4.,
    clip_frames=32,
    ignore_index=21,
    pipeline=None)
# 2 on each of 8 GPUs.
train_dataloader = dict(
    batch_size=2,
    num_workers=8,
    persistent_workers=True,
    sampler=dict(type='DefaultSampler', shuffle=True),
    batch_sampler=dict(type='StatefulVideoSampler'),
    dataset=dict(ann_file='val.csv', **dataset))
val_dataloader = dict(
    batch_size=1,
    num_workers=1,
    persistent_workers=True,
    sampler=dict(type='DefaultSampler', shuffle=False),
    dataset=dict(ann_file='test.csv', test_mode=True, **dataset))
test_dataloader = val_dataloader

val_evaluator = dict(type='PerFrameMAP', ignore_index=21)
test_evaluator = dict(type='PerFrameMAP', ignore_index=21, per_class=True)
