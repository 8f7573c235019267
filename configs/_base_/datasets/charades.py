# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0. Charades:
# the authors' frames at 24 per second (Charades_v1_rgb), and SlowFast's lists
# of frames, train.csv and val.csv.
dataset_type = 'FrameListDataset'
data_root = 'data/charades'
frame_dir = 'Charades_v1_rgb'
ann_file_train = 'train.csv'
ann_file_val = 'val.csv'
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
    type=dataset_type,
    data_root=data_root,
    data_prefix=dict(img=frame_dir),
    num_classes=num_classes)
# 4 clips on each of 8 GPUs.
train_dataloader = dict(
    batch_size=4,
    num_workers=8,
    persistent_workers=True,
    sampler=dict(type='DefaultSampler', shuffle=True),
    dataset=dict(
        ann_file=ann_file_train,
        pipeline=train_pipeline,
        **dataset))
val_dataloader = dict(
    batch_size=4,
    num_workers=8,
    persistent_workers=True,
    sampler=dict(type='DefaultSampler', shuffle=False),
    dataset=dict(
        ann_file=ann_file_val,
        pipeline=val_pipeline,
        test_mode=True,
        **dataset))
test_dataloader = dict(
    batch_size=1,
    num_workers=8,
    persistent_workers=True,
    sampler=dict(type='DefaultSampler', shuffle=False),
    dataset=dict(
        ann_file=ann_file_val,
        pipeline=test_pipeline,
        test_mode=True,
        **dataset))

val_evaluator = dict(
    type='AccMetric', metric_list=('mean_average_precision', ))
test_evaluator = val_evaluator
