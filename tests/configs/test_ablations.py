# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Ablation rows: models, costs and figures of the papers' tables."""
import re
from pathlib import Path

import pytest
import yaml
from config_cache import load_config
from mmaction.registry import MODELS

from mmvidattn.apis import list_models
from mmvidattn.apis.complexity import count_config, view_of
from mmvidattn.apis.config import list_rows

PREFIX = 'linear_ff_'
NAMES = [name.removeprefix(PREFIX) for name in list_models(
    f'{PREFIX}table0[12]*', ablations=True)]


@pytest.fixture
def attentions(narrow):
    """Build the model of a row; return the attentions of its block by name.

    64 channels are the smallest width that gives each of 24 neighbors one.
    """

    def build(name):
        cfg = narrow(f'{PREFIX}{name}', width=64, num_frames=8, img_size=64)
        cfg.model.data_preprocessor = None
        block = MODELS.build(cfg.model).backbone.blocks[0]
        return {n: getattr(block, n) for n in block.branches[:-1]}

    return build


def _shifts(attention):
    return [shift.mode for shift in attention.shifts]


@pytest.mark.parametrize('row, gates, width', [
    ('table04_no_fixation', [], 0),
    ('table04_qk_separate', ['q_gate', 'k_gate'], 1),
    ('table04_qk_cooperative', ['q_gate', 'k_gate'], 2),
    ('table04_qk_cooperative_shared', ['gate'], 2),
    ('table04_qkv_cooperative', ['q_gate', 'k_gate'], 3),
    ('table04_qkv_cooperative_shared', ['gate'], 3),
    ('sec53_aggregate_add', ['gate'], 1),
    ('sec53_aggregate_mul', ['gate'], 1),
])
def test_table_4_has_the_named_gates(attentions, row, gates, width):
    for attention in attentions(row).values():
        assert len(attention.shifts) == 1
        fixation = attention.fixation
        children = [] if fixation is None else fixation.named_children()
        assert [name for name, _ in children] == gates
        for gate in gates:
            # Heads of 32 channels.
            assert getattr(fixation, gate).weight.shape == (32, 32 * width)
        if row.startswith('sec53'):
            assert fixation.aggregate == row[-3:]


@pytest.mark.parametrize('row, patterns, frames, shifts, fixation', [
    ('factorized', ['time', 'space'], None, [['eight'], ['tsm']], True),
    ('joint', ['joint'], None, [['tsm', 'eight']], True),
    ('joint_released', ['joint'], None, [[]], False),
    ('windowed', ['window'], 3, [['tsm', 'eight']], True),
])
def test_table_6_has_the_named_pattern(attentions, row, patterns, frames,
                                       shifts, fixation):
    got = list(attentions(f'table06_{row}').values())
    assert [attention.pattern for attention in got] == patterns
    assert [_shifts(attention) for attention in got] == shifts
    for attention in got:
        assert attention.window_frames == frames
        assert (attention.fixation is not None) == fixation


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
    for attention in attentions(name).values():
        attends, (cls, options) = attention.attention, KINDS[kind]
        assert type(attends).__name__ == cls
        assert options.items() <= vars(attends).items()
        ours = kind == 'ours'
        assert (attention.fixation is not None) == ours
        assert len(attention.shifts) == ours


VIVIT = Path(__file__).resolve().parents[2] / 'configs/vivit/ablations'
# Numbers of the paper's tables, in the order of the rows.
PAPER = {
    'Table 1': [78.5, 73.2, 77.6, 79.2],
    'Table 2': [80.0, 455.2, 88.9, 78.8, 284.4, 115.1, 77.4, 372.3, 117.3,
                76.3, 277.1, 88.9, 75.8, 283.9, 86.7,
                43.1, 43.7, 39.1, 39.5, 38.8],
    'Preprint, Table 3': [75.8, 78.6, 78.8, 78.8, 78.9],
    'Table 3': [38.4, 39.6, 40.2, 41.1, 43.1, 43.7],
    'Figure 6': [],
    'Table 4': [80.3, 1446, 80.7, 2919, 81.0, 3992],
    'Preprint, Figure 7': [80.0, 455.2, 80.3, 1446],
    'Figure 7': [995.3, 3980.4],
    'Table 5': [80.6, 92.7, 3.98, 81.7, 93.8, 11.94, 83.5, 94.3, 11.94,
                84.9, 95.8, 47.77, 82.9, 94.6, 84.3, 94.9, 85.8, 96.5],
}


def test_vivit_page_has_the_paper_numbers_in_order():
    tables = {}
    for line in (VIVIT / 'README.md').read_text().splitlines():
        if line.startswith('## '):
            figures = tables.setdefault(line[3:].split(':')[0], [])
        elif line.startswith('| ') and not line.startswith('| row'):
            figures += map(float, re.findall(r'\d+\.\d+|\d{4}',
                                             line.split(' | ')[2]))
    rows = yaml.safe_load((VIVIT / 'page.yml').read_text())['tables']
    assert PAPER == {name: tables[name] for name in rows}


def test_rows_of_dualformer_tables_3_to_7_use_token_labels():
    rows = [row for row in list_rows() if row.name.startswith('dualformer_')]
    assert len(rows) == 19
    for row in rows:
        assert load_config(row.name).model.type == 'TokenLabelRecognizer3D'


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
