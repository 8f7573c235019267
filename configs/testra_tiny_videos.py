# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
# TeSTra on your videos, in minutes on a CPU: features of
# linear_ff_tiny_motion at 4 Hz, made by extract_features.py and targets.py
# (tools/data/online/README.md). Set num_classes to the number of lines of
# classes.txt.
_base_ = 'testra_tiny_synthetic.py'

data_root = 'data/online'
num_classes = 2
memory = dict(
    long_steps=32,
    long_rate=1,
    work_steps=8,
    anticipation_steps=0)
dataset = dict(
    data_root=data_root,
    data_prefix=dict(
        _delete_=True, rgb='rgb', gt_action='target_perframe'),
    metainfo=dict(classes=f'{data_root}/classes.txt'),
    **memory)

model = dict(
    backbone=dict(
        in_channels=dict(_delete_=True, rgb=96),
        long_memory_length=32,
        work_memory_length=8,
        num_anticipation_tokens=0),
    cls_head=dict(num_classes=num_classes))

train_dataloader = dict(batch_size=8, dataset=dataset)
val_dataloader = dict(dataset=dataset)
test_dataloader = dict(dataset=dataset)

# For tools/stream.py: the extractor of the features, and the scores at which
# events start and end.
online = dict(
    extractors=dict(
        rgb=dict(
            config='linear_ff_tiny_motion',
            checkpoint='default')),
    events=dict(on=0.5, off=0.3, min_duration=0.5))
