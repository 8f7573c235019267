# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Ablation rows: models, costs and figures of the papers' tables."""
import pytest
import torch
from mmaction.registry import MODELS

from mmvidattn.apis import list_models, load_config
from mmvidattn.apis.complexity import count_config, view_of

PREFIX = 'linear_ff_'
NAMES = [name.removeprefix(PREFIX) for name in list_models(
    f'{PREFIX}table0[12]*', ablations=True)]


@pytest.fixture
def attentions(narrow):
    """Build the model of a row; return the attentions of its block.

    64 channels are the smallest width that gives each of 24 neighbors one.
    """

    def build(name):
        cfg = narrow(f'{PREFIX}{name}', width=64, num_frames=8, img_size=64)
        cfg.model.data_preprocessor = None
        block = MODELS.build(cfg.model).backbone.blocks[0]
        return [getattr(block, name) for name in block.branches[:-1]]

    return build


@pytest.mark.parametrize('row, gates, width', [
    ('table04_no_fixation', [], 0),
    ('table04_qk_separate', ['q_gate', 'k_gate'], 1),
    ('table04_qkv_cooperative_shared', ['gate'], 3)])
def test_table_4_has_the_named_gates(attentions, row, gates, width):
    for attention in attentions(row):
        # Heads of 32 channels.
        shapes = {name: gate.weight.shape for name, gate in (
            attention.fixation or torch.nn.Module()).named_children()}
        assert shapes == dict.fromkeys(gates, (32, 32 * width))


@pytest.mark.parametrize('row, patterns, frames, shifts', [
    ('factorized', ['time', 'space'], None, [['eight'], ['tsm']]),
    ('windowed', ['window'], 3, [['tsm', 'eight']])])
def test_table_6_has_the_named_pattern(attentions, row, patterns, frames,
                                       shifts):
    got = attentions(f'table06_{row}')
    assert [one.pattern for one in got] == patterns
    assert {one.window_frames for one in got} == {frames}
    assert [[shift.mode for shift in one.shifts] for one in got] == shifts


KINDS = dict(
    cosformer=('CosFormerAttention', {}),
    lara=('LARAAttention', dict(num_landmarks=49)),
    linear_transformer=('LinearAttention', dict(kernel='elu+1', offset=0)),
    linformer=('LinformerAttention', dict(num_projections=256)),
    orthoformer=('OrthoformerAttention', dict(num_landmarks=64)),
    ours=('LinearAttention', dict(kernel='relu', offset=32**-.5)),
    performer=('PerformerAttention', dict(feature_dims=64)))
RIVALS = [(name, name.split('_', name.startswith('table02') + 1)[-1])
          for name in NAMES]


@pytest.mark.parametrize('name, kind', RIVALS)
def test_tables_1_and_2_have_the_named_attention(attentions, name, kind):
    for attention in attentions(name):
        attends, (cls, options) = attention.attention, KINDS[kind]
        assert type(attends).__name__ == cls
        assert options.items() <= vars(attends).items()
        ours = kind == 'ours'
        assert (attention.fixation is not None) == ours
        assert len(attention.shifts) == ours


@pytest.mark.parametrize('name, options, views, gflops, mparams', [
    ('vivit_b16x2_fact_encoder_k400',
     {'model.backbone.num_temporal_layers': 0}, 1, 283.9, 86.7),
    ('vivit_table05_h14x2_k400', None, 12, 47770, None),
    ('dualformer_table07_patch4', None, 4, 111.99, None)])
def test_costs_match_the_paper(name, options, views, gflops, mparams):
    cfg = load_config(name, options)
    counts = count_config(cfg, view_of(cfg.test_pipeline)[0])
    # The papers also count some elementwise work and norms (see the pages).
    assert gflops / 1.011 < views * counts.macs / 1e9 < gflops
    if mparams is not None:
        assert round(counts.params / 1e6, 1) == mparams
