# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Ablation rows of the linear video transformer build the named model."""
import pytest
from mmaction.registry import MODELS

from mmvidattn.apis import list_models

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
