# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
# A causal transformer in minutes on a CPU, on the streams that
# tools/data/online/make_synthetic.py writes.
_base_ = 'testra_tiny_synthetic.py'

model = dict(
    backbone=dict(
        _delete_=True,
        type='CausalTransformer',
        in_channels=dict(rgb=32, flow=16),
        embed_dims=64,
        num_heads=4,
        ffn_dims=128,
        num_layers=2,
        attention_window=64,
        work_memory_length=128,
        drop_rate=0.1))

train_pipeline = _base_.test_pipeline
window = dict(
    long_steps=0, work_steps=128, anticipation_steps=0)
# Windows overlap by three quarters.
train_dataloader = dict(
    sampler=dict(stride=32),
    dataset=dict(pipeline=train_pipeline, **window))
val_dataloader = dict(batch_size=1, dataset=dict(windows='videos', **window))
test_dataloader = dict(dataset=window)
