# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
# Clips of EPIC-Kitchens-100, as in scenic's ViViT: 32 consecutive frames of
# each segment.
_base_ = 'vivit_kinetics.py'

from mmvidattn.utils.config import derive

in_a_row = dict(frame_interval=1)
derive(
    _base_,
    train_pipeline=dict(
        ScenicSampleFrames=in_a_row,
        ScenicColorJitter=dict(
            _delete_=True, type='ScenicRandAugment', num_ops=2,
            magnitude=15)),
    val_pipeline=dict(ScenicSampleFrames=in_a_row),
    test_pipeline=dict(
        ScenicSampleFrames=in_a_row,
        UniformThreeCrop=dict(type='CenterCrop')))
