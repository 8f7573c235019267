# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
# One causal network from pixels to events, in minutes on a CPU, on the videos
# that tools/data/online/make_pixels.py writes. Results are in
# tools/data/online/README.md.
_base_ = ['_base_/models/linear_ff_causal_online.py',
          '_base_/default_runtime.py']

data_root = 'data/online_pixels'
num_classes = 9
img_size = 32

pipeline = [
    dict(type='DecordInit'),
    dict(type='StreamSampleFrames'),
    dict(type='DecordDecode'),
    dict(type='Resize', scale=(img_size, img_size), keep_ratio=False),
    dict(type='FormatShape', input_format='NCTHW'),
    dict(type='PackStreamInputs')
]
train_pipeline = val_pipeline = test_pipeline = pipeline
dataset = dict(
    type='VideoStreamDataset',
    data_root=data_root,
    data_prefix=dict(video='videos'),
    metainfo=dict(classes=f'{data_root}/classes.txt'),
    frame_rate=25.,
    clip_frames=256,
    pipeline=pipeline)
train_dataloader = dict(
    batch_size=4,
    num_workers=0,
    sampler=dict(type='DefaultSampler', shuffle=True),
    batch_sampler=dict(type='StatefulVideoSampler'),
    dataset=dict(ann_file='train.csv', **dataset))
val_dataloader = dict(
    batch_size=1,
    num_workers=0,
    sampler=dict(type='DefaultSampler', shuffle=False),
    dataset=dict(ann_file='val.csv', test_mode=True, **dataset))
test_dataloader = val_dataloader
val_evaluator = dict(type='PerFrameMAP')
test_evaluator = dict(type='PerFrameMAP', per_class=True)

model = dict(
    backbone=dict(
        encoder=dict(
            img_size=img_size,
            # Two by two cells of a cue's pattern.
            patch_size=16,
            patch_stride=16,
            patch_padding=0,
            embed_dims=64,
            num_layers=1,
            num_heads=8,
            attention=dict(offset=0),
            init_std=0.125)),
    cls_head=dict(num_classes=num_classes, in_channels=64))

optim_wrapper = dict(
    type='OptimWrapper',
    optimizer=dict(type='AdamW', lr=4e-3, weight_decay=0.01),
    clip_grad=dict(max_norm=1.0))
param_scheduler = dict(
    type='WarmupCosineLR',
    warmup=1,
    begin=0,
    end=6,
    by_epoch=True,
    convert_to_iter_based=True)
train_cfg = dict(type='EpochBasedTrainLoop', max_epochs=6, val_interval=3)
val_cfg = dict(type='ValLoop')
test_cfg = dict(type='TestLoop')
randomness = dict(seed=0)
# For tools/stream.py: scores at which events start and end.
online = dict(events=dict(on=0.5, off=0.3, min_duration=0.2))
