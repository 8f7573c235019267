# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
# Something-Something v2 as ViViT reads it: 32 frames in a row, 256 x 256.
_base_ = 'ssv2.py'

# No Flip: many classes name a direction.
train_pipeline = [
    dict(type='DecordInit', io_backend='disk'),
    dict(type='SampleFrames', clip_len=32, frame_interval=1, num_clips=1),
    dict(type='DecordDecode'),
    # 288 times 0.9 to 1.33.
    dict(type='RandomRescale', scale_range=(259, 383)),
    dict(type='RandomCrop', size=256),
    dict(type='RandAugment', num_ops=2, magnitude=10),
    dict(type='FormatShape', input_format='NCTHW'),
    dict(type='PackActionInputs')
]
val_pipeline = _base_.val_pipeline
val_pipeline[1] = dict(train_pipeline[1], test_mode=True)
val_pipeline[3].update(scale=(-1, 288))
val_pipeline[4].update(crop_size=256)
test_pipeline = _base_.test_pipeline
test_pipeline[1] = dict(train_pipeline[1], num_clips=4, test_mode=True)
test_pipeline[3].update(scale=(-1, 256))
test_pipeline[4].update(crop_size=256)

train_dataloader = dict(
    batch_size=8, dataset=dict(pipeline=train_pipeline))
val_dataloader = dict(dataset=dict(pipeline=val_pipeline))
test_dataloader = dict(dataset=dict(pipeline=test_pipeline))
