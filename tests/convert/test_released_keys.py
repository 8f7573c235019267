# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Tensors with released names and shapes load into our configs."""
import json

import pytest
import torch
from mmaction.registry import MODELS

from mmvidattn.apis import load_config
from mmvidattn.convert import convert

FRAMES_16 = {'model.backbone.num_frames': 16}
TINY = {'model.backbone.arch': 'tiny', 'model.cls_head.in_channels': 384}
# Source and config by the file of names and shapes.
RELEASED = {
    **{f'dualformer/dualformer_{file}.keys': ('dualformer', *config)
       for file, *config in (
           ('tiny', 'dualformer_tiny_k400'),
           ('small', 'dualformer_small_k400'),
           ('base', 'dualformer_base_k400'),
           ('base_k600', 'dualformer_base_k600'),
           ('small_diving48', 'dualformer_small_diving48'),
           ('tiny_16f_ucf101', 'dualformer_tiny_ucf101', FRAMES_16),
           ('tiny_tl', 'dualformer_tiny_tl_k400'),
           ('small_tl', 'dualformer_small_tl_k400'))},
    **{f'laps/{file}.keys': ('laps', *config) for file, *config in (
        ('visformer_laps_8x8', 'laps_visformer_k400'),
        ('visformer_tiny_laps_8x8', 'laps_visformer_k400', TINY),
        ('visformer_laps_32x8_320', 'laps_visformer_h_k400'),
        ('rest_small_laps_8x8', 'laps_rest_s_k400'),
        ('rest_base_laps_8x8', 'laps_rest_b_k400'),
        ('rest_large_laps_32x8_320', 'laps_rest_l_k400'),
        ('vit_b16_laps_8x8', 'laps_vit_k400'),
        ('tokshift_b16_8x32', 'laps_tokshift_k400'))},
    'linear/keys_lvt_ssv2': ('linear_ff', 'linear_ff_ssv2'),
    'linear/keys_lvt_k400': ('linear_ff', 'linear_ff_released_k400'),
    'linear/keys_xvit_ssv2': ('xvit', 'xvit_ssv2'),
    'linear/keys_xvit_k400': ('xvit', 'xvit_k400'),
    **{f'testra/{file}.keys': (source, config)
       for file, source, config in (
           ('thumos_testra_decay', 'testra', 'testra_thumos14'),
           ('thumos_testra_box', 'testra', 'testra_box_thumos14'),
           ('thumos_testra_lite', 'testra', 'testra_lite_thumos14'),
           ('thumos_testra_decay_anti', 'testra',
            'testra_anticipation_thumos14'),
           ('thumos_lstr', 'lstr', 'lstr_thumos14'),
           ('tvseries_lstr', 'lstr', 'lstr_tvseries'),
           ('ek100_testra_decay', 'testra', 'testra_ek100'),
           ('ek100_testra_box', 'testra', 'testra_box_ek100'))},
    **{f'vivit/keys_scenic_{file}_B16x2': (
        'vivit_scenic', f'vivit_b16x2_{model}_k400')
       for file, model in (
           ('spacetime', 'joint'), ('factorized_encoder', 'fact_encoder'),
           ('factorized_self_attention_block', 'fact_attention'),
           ('factorized_dot_product_attention', 'fact_dot'))},
    'vivit/keys_hf_vivit_b16x2': ('vivit_hf', 'vivit_b16x2_joint_k400'),
}


def tables(keys):
    """Return the dicts of names and shapes in a file."""
    if all(isinstance(shape, list) for shape in keys.values()):
        return [keys]
    return [x for x in keys.values() if isinstance(x, dict)]


@pytest.mark.filterwarnings('ignore:this DualFormer has kernels')
@pytest.mark.filterwarnings('ignore:a released Visformer at 320')
@pytest.mark.parametrize('file', RELEASED)
def test_released_tensors_load_strictly(shared_dir, file):
    source, config, *options = RELEASED[file]
    keys = json.loads((shared_dir / f'keys/{file}.json').read_text())
    cfg = load_config(config, *options).model
    # Blending uses distributions, which do not support meta tensors.
    cfg.data_preprocessor = None
    with torch.device('meta'):
        model = MODELS.build(cfg)
        for shapes in tables(keys):
            result = convert(source, {name: torch.empty(shape)
                                      for name, shape in shapes.items()})
            if source in ('dualformer', 'laps'):
                # No tensor is resized.
                assert {name: x.shape for name, x in result.items()} == {
                    name: x.shape for name, x in model.state_dict().items()}
            model.load_state_dict(result, strict=True, assign=True)
