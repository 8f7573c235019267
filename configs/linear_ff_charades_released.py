# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
# Released recipe for Charades ("charades_21k_cgate"). It starts from the
# Kinetics-400 model after 40 epochs, with one gate for Q and K, and trains for
# 60 epochs with several labels per clip. The score of a class is its largest
# score over 10 x 3 views. The paper does not report results on Charades.
_base_ = [
    '_base_/models/linear_ff.py', '_base_/schedules/sgd_35e.py',
    '_base_/default_runtime.py'
]

model = dict(
    backbone=dict(temporal_shift=dict(divisor=8, segment_frames=8)),
    cls_head=dict(
        num_classes=157,
        multi_class=True,
        loss_cls=dict(type='BCELossWithLogits'),
        average_clips='max'))

# The authors' frames at 24 per second (Charades_v1_rgb), and SlowFast's lists
# of frames, train.csv and val.csv.
data_root = 'data/charades'
num_classes = 157
num_frames = 16
img_size = 224

# As in the released code of the linear video transformer.
clip = dict(type='CharadesSampleFrames', clip_len=num_frames, frame_interval=8)
train_pipeline = [
    clip,
    dict(type='ClipLabels'),
    dict(type='RawFrameDecode'),
    dict(type='AutoAugment', policy='v0', interpolation='random'),
    dict(type='RandomRescale', scale_range=(256, 340)),
    dict(type='RandomCrop', size=img_size),
    dict(type='Flip', flip_ratio=0.5),
    dict(type='FormatShape', input_format='NCTHW'),
    dict(type='PackActionInputs')
]
val_pipeline = [
    dict(clip, num_clips=1, test_mode=True),
    dict(type='RawFrameDecode'),
    dict(type='Resize', scale=(-1, img_size)),
    dict(type='CenterCrop', crop_size=img_size),
    dict(type='FormatShape', input_format='NCTHW'),
    dict(type='PackActionInputs')
]
test_pipeline = [
    dict(clip, num_clips=10, test_mode=True),
    dict(type='RawFrameDecode'),
    dict(type='Resize', scale=(-1, 256)),
    dict(type='ThreeCrop', crop_size=256),
    dict(type='FormatShape', input_format='NCTHW'),
    dict(type='PackActionInputs')
]

dataset = dict(
    type='FrameListDataset',
    data_root=data_root,
    data_prefix=dict(img='Charades_v1_rgb'),
    num_classes=num_classes)
# 4 clips on each of 8 GPUs.
train_dataloader = dict(
    batch_size=4,
    num_workers=8,
    persistent_workers=True,
    drop_last=True,
    sampler=dict(type='DefaultSampler', shuffle=True),
    dataset=dict(ann_file='train.csv', pipeline=train_pipeline, **dataset))
val_dataloader = dict(
    batch_size=4,
    num_workers=8,
    persistent_workers=True,
    sampler=dict(type='DefaultSampler', shuffle=False),
    dataset=dict(
        ann_file='val.csv', pipeline=val_pipeline, test_mode=True, **dataset))
test_dataloader = dict(
    batch_size=1,
    num_workers=8,
    persistent_workers=True,
    sampler=dict(type='DefaultSampler', shuffle=False),
    dataset=dict(
        ann_file='val.csv', pipeline=test_pipeline, test_mode=True, **dataset))

val_evaluator = dict(
    type='AccMetric', metric_list=('mean_average_precision', ))
test_evaluator = val_evaluator

optim_wrapper = dict(optimizer=dict(lr=0.035, weight_decay=1e-5))
_base_.param_scheduler[0].start_factor = 0.001 / 0.035
_base_.param_scheduler[0].end = 60
train_cfg = dict(max_epochs=60)
