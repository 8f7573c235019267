# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
# MAT in minutes on a CPU, on the streams that
# tools/data/online/make_synthetic.py writes.
_base_ = 'testra_tiny_synthetic.py'

model = dict(
    backbone=dict(
        _delete_=True,
        type='MAT',
        in_channels=dict(rgb=32, flow=16),
        embed_dims=64,
        num_heads=4,
        ffn_dims=128,
        long_memory_length=128,
        work_memory_length=32,
        num_anticipation_tokens=4,
        num_queries=8,
        num_encoder_layers=1,
        num_layers=1,
        num_future_queries=8,
        num_future_layers=1,
        num_future_tokens=12),
    cls_head=dict(type='MATHead'))

stretch = dict(stretch_long_memory=True)
train_dataloader = dict(dataset=dict(future_steps=12, **stretch))
val_dataloader = dict(dataset=stretch)
test_dataloader = dict(dataset=stretch)
