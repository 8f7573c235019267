# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
# MiniROAD in minutes on a CPU, on the streams that
# tools/data/online/make_synthetic.py writes.
_base_ = 'testra_tiny_synthetic.py'

model = dict(
    backbone=dict(
        _delete_=True,
        type='MiniROAD',
        in_channels=dict(rgb=32, flow=16),
        embed_dims=64,
        proj_dims=64,
        work_memory_length=128,
        drop_rate=0.1),
    cls_head=dict(
        num_loss_steps=1, loss_cls=dict(normalize_targets=True)))

train_pipeline = _base_.test_pipeline
window = dict(
    long_steps=0, work_steps=128, anticipation_steps=0)
# Fewer windows than in the released recipe, which has a stride of 4.
train_dataloader = dict(
    sampler=dict(stride=16),
    dataset=dict(
        pad_start=True, pipeline=train_pipeline, **window))
val_dataloader = dict(batch_size=1, dataset=dict(windows='videos', **window))
test_dataloader = dict(dataset=window)
