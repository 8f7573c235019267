# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Train and test one step for each code path.

Transforms, losses and optimizers come from the config; models are narrow and
clips small. tests/apis/test_models.py builds every config; test_labels.py
and test_online_configs.py train on frame lists and on feature streams.
"""
import pytest

# Config, and the number of views, frames and side of the tested clips.
STEPS = {
    'linear_ff_ssv2': (6, 8, 64),
    'linear_ff_paper_ssv2': (6, 8, 64),
    'linear_ff_tiny_motion': (6, 8, 64),
    'linear_ff_causal_ssv2': (6, 8, 64),
    'xvit_k400': (6, 8, 64),
    'xvit_causal_ssv2': (3, 8, 64),
    'vivit_b16_causal_k400': (12, 16, 64),
    'vivit_b16x2_joint_k400': (12, 16, 64),
    'vivit_l16x2_fact_encoder_ssv2': (12, 16, 64),
    'vivit_dinov2_b14_fact_encoder_ucf101': (6, 8, 56),
    'vivit_tiny_frozen_motion': (6, 8, 64),
    'vivit_tiny_linear_distill_motion': (6, 8, 64),
    'vjepa2_tiny_motion': (6, 8, 64),
    'dualformer_tiny_k400': (4, 16, 64),
    'dualformer_tiny_tl_k400': (4, 16, 64),
    'laps_visformer_k400': (15, 8, 64),
    'laps_rest_s_k400': (15, 8, 64),
    'laps_vit_k400': (15, 8, 64),
    'laps_tokshift_k400': (15, 8, 64)}


@pytest.mark.parametrize('name', STEPS)
def test_train_step_and_test_step(name, narrow, step_once):
    views, frames, side = STEPS[name]
    cfg = narrow(name, num_frames=frames, img_size=side)
    cfg.optim_wrapper.pop('accumulative_counts', None)
    assert step_once(cfg) == (views, 3, frames, side, side)
