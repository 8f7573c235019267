# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
# Untrimmed videos, read as streams of 4 frames per second. A config adds
# paths, lists and classes. The short side of a frame is 224 pixels, and the
# middle is cropped, also in training, because the clips of a video continue
# each other.
img_size = 224

train_pipeline = val_pipeline = test_pipeline = [
    dict(type='DecordInit'),
    dict(type='StreamSampleFrames'),
    dict(type='DecordDecode'),
    dict(type='Resize', scale=(-1, img_size)),
    dict(type='CenterCrop', crop_size=img_size),
    dict(type='FormatShape', input_format='NCTHW'),
    dict(type='PackStreamInputs')
]
dataset = dict(
    type='VideoStreamDataset',
    frame_rate=4.,
    clip_frames=32,
    pipeline=train_pipeline)
# 2 on each of 8 GPUs.
train_dataloader = dict(
    batch_size=2,
    num_workers=8,
    persistent_workers=True,
    sampler=dict(type='DefaultSampler', shuffle=True),
    batch_sampler=dict(type='StatefulVideoSampler'),
    dataset=dataset)
val_dataloader = dict(
    batch_size=1,
    num_workers=1,
    persistent_workers=True,
    sampler=dict(type='DefaultSampler', shuffle=False),
    dataset=dict(test_mode=True, **dataset))
test_dataloader = val_dataloader
