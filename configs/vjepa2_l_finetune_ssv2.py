# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
# All layers of V-JEPA 2 ViT-L on Something-Something v2, with lower rates in
# early layers. The authors only train probes: this recipe is ours, and we have
# not trained it.
_base_ = 'vjepa2_l_ssv2.py'

model = dict(
    freeze=None,
    backbone=dict(drop_path_rate=0.2, with_cp=True))

optim_wrapper = dict(
    optimizer=dict(lr=1e-4, weight_decay=0.05),
    constructor='LearningRateDecayOptimWrapperConstructor',
    paramwise_cfg=dict(decay_rate=0.8),
    clip_grad=dict(max_norm=1.0))
param_scheduler = [dict(
    type='WarmupCosineLR', curve='line', start_factor=0.01, warmup=2, end=20,
    convert_to_iter_based=True)]
auto_scale_lr = dict(base_batch_size=64)
