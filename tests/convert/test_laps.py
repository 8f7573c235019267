# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
import re

import pytest
import torch
from goldens.make import BACKBONES
from mmaction.registry import MODELS

from mmvidattn.convert import convert
from mmvidattn.convert.rename import rename

# From our names to the authors'.
BLOCKS = ('attn_norm', 'norm1'), ('mlp_norm', 'norm2')


@pytest.mark.parametrize('source, network, rules', [
    ('visformer_timm', 'laps_visformer', ()),
    # The authors' norms are in a submodule.
    ('visformer_s_in10k', 'laps_visformer', (
        (r'(stem\.1|norm\d?)\.', r'\1.bn.'), )),
    ('rest', 'laps_rest', BLOCKS),
    ('laps_vit_timm', 'laps_vit', (*BLOCKS, ('projection', 'proj')))])
def test_image_models_are_converted_without_classifier(source, network, rules):
    state = MODELS.build(BACKBONES[network]).state_dict()
    published = {rename(name, rules): value[..., None, None] if (
        'visformer' in source and re.search(r'attn\.\w+\.weight', name))
        else value for name, value in state.items()}
    assert rules == () or published.keys() != state.keys()
    got = convert(source, {**published, 'pre_logits.fc.weight': torch.ones(1),
                           'head.weight': torch.ones(5, 4)})
    assert [*got] == [f'backbone.{name}' for name in state]
    assert all(map(torch.equal, got.values(), state.values()))


@pytest.mark.parametrize('columns, warns', [(28, False), (40, True),
                                            (45, False)])
def test_warns_of_an_unknown_shift(columns, warns, recwarn):
    """At 320 x 320, B and L shift 1/8 of the channels, and H 1/4."""
    convert('laps', {f'module.base_model.{name}': torch.zeros(shape)
                     for name, shape in {
                         'patch_embed1.proj.weight': (4, 2, 4, 4),
                         'pos_embed1': (1, 4, columns, columns)}.items()})
    messages = [str(warning.message) for warning in recwarn]
    assert bool(messages) == warns
    if warns:
        assert 'laps_visformer_b_v1_k400' in messages[0]
