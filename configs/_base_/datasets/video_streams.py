# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
# Untrimmed videos, read as streams of 4 frames per second. A data set adds its
# paths, lists and classes.
dataset = dict(
    type='VideoStreamDataset', frame_rate=4., clip_frames=32, pipeline=None)
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
