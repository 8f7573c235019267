# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0. TokShift on
# ViT-B/16: 16 x 224 x 224, frames 32 apart. Paper, Table 4: top-1 78.2, top-5
# 93.80, 269.5 G multiply-accumulates per view (without the products of
# attention), and 85.9 M parameters.
_base_ = 'laps_vit_k400.py'

from mmvidattn.utils.config import derive

apart = dict(SpreadSampleFrames=dict(frame_interval=32))
derive(
    _base_,
    num_frames=16,
    train_pipeline=apart,
    val_pipeline=apart,
    test_pipeline=apart)



model = dict(backbone=dict(attention='2d', shift='token'))
train_dataloader = dict(batch_size=12)
val_dataloader = dict(batch_size=12)

optim_wrapper = dict(optimizer=dict(lr=0.12))
auto_scale_lr = dict(base_batch_size=48)
