# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
# Released recipe for Kinetics-400 from ImageNet-21k, with separate gates for Q
# and K ("k400_21k_cgate"): 16 frames shifted as two clips of 8, the
# eight-neighbor shift, 40 epochs, 32 clips per batch from the launch scripts.
# (The yaml sets 64, at the same learning rate.)
_base_ = 'linear_ff_k400.py'

model = dict(
    backbone=dict(
        fixation=dict(shared=False),
        temporal_shift=dict(segment_frames=8),
        spatial_shift=dict(_delete_=True, mode='eight', size=1)))

optim_wrapper = dict(optimizer=dict(weight_decay=1e-5))
_base_.param_scheduler[0].end = 40
train_cfg = dict(max_epochs=40)
