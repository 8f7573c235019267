# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0. Model 2 on
# top of a frozen DINOv2-B/14, for 16 frames, on UCF-101. Only the temporal
# encoder and the head are trained. This recipe is not from a paper, and we
# have not trained it. Set FILE to the published
# weights (see start_weights.md): model.backbone.init_cfg = dict(
# type='Pretrained', checkpoint=FILE, source='vivit_image')
_base_ = [
    '_base_/models/vivit_b16x2.py', '_base_/datasets/ucf101.py',
    '_base_/pipelines/uniform.py', '_base_/default_runtime.py'
]

from mmvidattn.utils.config import derive

derive(_base_)

model = dict(
    type='FineTunedRecognizer3D',
    freeze='spatial',
    backbone=dict(
        patch_size=14,
        tubelet_frames=1,
        model='fact_encoder',
        num_temporal_layers=4,
        gelu_approximate='none',
        norm_eps=1e-6),
    data_preprocessor=dict(
        mean=[123.675, 116.28, 103.53], std=[58.395, 57.12, 57.375]))

train_dataloader = dict(batch_size=32)
val_dataloader = dict(batch_size=32)
test_dataloader = dict(batch_size=8)

optim_wrapper = dict(
    type='OptimWrapper',
    optimizer=dict(type='AdamW', lr=3e-4, weight_decay=0.05),
    clip_grad=dict(max_norm=1.0))
param_scheduler = [dict(
    type='WarmupCosineLR', curve='line', start_factor=0.01, warmup=2, end=20,
    convert_to_iter_based=True)]
train_cfg = dict(by_epoch=True, max_epochs=20, val_interval=2)
val_cfg = dict(type='ValLoop')
test_cfg = dict(type='TestLoop')
auto_scale_lr = dict(enable=False, base_batch_size=32)
