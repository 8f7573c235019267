# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Claims of *Linear Video Transformer with Feature Fixation*."""
from study import Claim, Row, Study

NO_SPATIAL = {'model.backbone.spatial_shift': None}
NO_TEMPORAL = {'model.backbone.temporal_shift': None}
NO_SHIFTS = {**NO_SPATIAL, **NO_TEMPORAL}
NO_FIXATION = {'model.backbone.fixation': None}


def _kernel(name: str) -> dict:
    # The offset is of ReLU alone: the others are positive as they are.
    return {
        'model.backbone.attention.kernel': name,
        'model.backbone.attention.offset': 0.
    }


def _fixation(**options) -> dict:
    return {'model.backbone.fixation': dict(options, _delete_=True)}


def _neighbors(mode: str, size: int) -> dict:
    return {'model.backbone.spatial_shift': dict(
        mode=mode, size=size, alpha=0.5)}


COSFORMER = {'model.backbone.attention': dict(
    _delete_=True, type='CosFormerAttention')}
SOFTMAX = {'model.backbone.attention': dict(
    _delete_=True, type='SoftmaxAttention')}

STUDY = Study(
    title='Linear video transformer with feature fixation',
    paper='https://arxiv.org/abs/2210.08164',
    task='clip_model',
    config='linear_ff_tiny_motion',
    changes={
        'model.backbone.num_frames': 8,
        'model.backbone.patch_size': 8,
        'model.backbone.patch_stride': 8,
        'model.backbone.patch_padding': 0,
        'model.backbone.embed_dims': 48,
        'model.backbone.num_heads': 4,
        'model.cls_head.in_channels': 48,
        'model.cls_head.hidden_dims': 48,
        'model.cls_head.dropout_ratio': 0.,
    },
    steps=1000,
    batch_size=16,
    rates=(1e-3, 2e-3),
    measure='top-1 on Something-Something V2',
    rows={
        'full': Row(paper=65.46),
        'baseline': Row({**NO_SHIFTS, **NO_FIXATION}, 61.67),
        'spatial shift': Row({**NO_TEMPORAL, **NO_FIXATION}, 61.99),
        'temporal shift': Row({**NO_SPATIAL, **NO_FIXATION}, 64.18),
        'both shifts': Row(NO_FIXATION, 64.28),
        'fixation': Row(NO_SHIFTS, 62.57),
        'separate, QK': Row(_fixation(mode='separate'), 64.46),
        'cooperative, QK': Row(_fixation(
            mode='cooperative', inputs='qk', shared=False), 64.61),
        'cooperative, QK, shared': Row(_fixation(
            mode='cooperative', inputs='qk', shared=True), 64.78),
        'cooperative, QKV': Row(_fixation(
            mode='cooperative', inputs='qkv', shared=False), 65.33),
        'sigmoid': Row(_kernel('sigmoid'), 63.26),
        'elu': Row(_kernel('elu+1'), 60.42),
        'joint': Row({'model.backbone.pattern': 'joint'}, 58.17),
        'windowed': Row({
            'model.backbone.pattern': 'windowed',
            'model.backbone.window_frames': 3}, 61.08),
        'cosFormer': Row({**COSFORMER, **NO_SHIFTS, **NO_FIXATION}, 61.18),
        'cosFormer, NA + FF': Row(COSFORMER, 64.97),
        'softmax': Row({**SOFTMAX, **NO_FIXATION}, 66.20),
        'softmax, FF': Row(SOFTMAX, 65.94),
        'cross 1': Row(_neighbors('cross', 1), 65.5),
        'square 1': Row(_neighbors('square', 1), 65.5),
        'cross 2': Row(_neighbors('cross', 2), 65.4),
        'square 2': Row(_neighbors('square', 2), 65.2),
        'one frame': Row(view='middle'),
        'shuffled frames': Row(view='shuffled'),
    },
    claims=[
        Claim('The spatial shift helps', 'spatial shift', 'baseline',
              'Table 3'),
        Claim('The temporal shift helps', 'temporal shift', 'baseline',
              'Table 3'),
        Claim('The temporal shift helps more than the spatial one',
              'temporal shift', 'spatial shift', 'Table 3'),
        Claim('Both shifts help more than the spatial one alone',
              'both shifts', 'spatial shift', 'Table 3'),
        Claim('Feature fixation helps', 'fixation', 'baseline', 'Table 3'),
        Claim('Feature fixation helps on top of the shifts', 'full',
              'both shifts', 'Table 3'),
        Claim('All three together help', 'full', 'baseline', 'Table 3'),
        Claim('Cooperation of Q and K helps their fixation',
              'cooperative, QK', 'separate, QK', 'Table 4'),
        Claim('V in the cooperation helps', 'full',
              'cooperative, QK, shared', 'Table 4'),
        Claim('Sharing the ratio helps, with Q and K',
              'cooperative, QK, shared', 'cooperative, QK', 'Table 4'),
        Claim('Sharing the ratio helps, with V', 'full', 'cooperative, QKV',
              'Table 4'),
        Claim('ReLU is better than sigmoid', 'full', 'sigmoid', 'Table 5'),
        Claim('Sigmoid is better than ELU+1', 'sigmoid', 'elu', 'Table 5'),
        Claim('Factorized attention is better than joint attention', 'full',
              'joint', 'Table 6'),
        Claim('Factorized attention is better than windowed attention',
              'full', 'windowed', 'Table 6'),
        Claim('Windowed attention is better than joint attention',
              'windowed', 'joint', 'Table 6'),
        Claim('Shifts and fixation help cosFormer', 'cosFormer, NA + FF',
              'cosFormer', 'Table 9'),
        Claim('Fixation does not help softmax attention', 'softmax',
              'softmax, FF', 'Table 9', equal=True),
        Claim('Cross and square do alike at size 1', 'cross 1', 'square 1',
              'Table 11', equal=True),
        Claim('The cross is better at size 2', 'cross 2', 'square 2',
              'Table 11'),
    ],
    notes=[
        'Without the spatial shift (`baseline`, `temporal shift`, '
        '`fixation`) 3 of 36 seeds do not see the direction of motion before '
        'the last update: they end at 49 to 68, the others at 81 to 87. With '
        'it all do. These three make the intervals of what is compared with '
        '`baseline` wide, and nothing of it is decided; on top of the shifts '
        'fixation helps.',
        'After 600 updates 15 of the 36 had not seen it, and three claims '
        'were decided that are not now: the spatial shift alone (+14.4 ± '
        '12.7) and all three together (+16.6 ± 12.6) helped, and cosFormer '
        'was made worse by them (-2.3 ± 1.4). So much of what the parts are '
        'worth here is how soon a model learns.',
        'ELU+1 does as well as ReLU here, and better than sigmoid; in the '
        'paper it is the worst kernel by far.',
        'A window of three frames does no better than joint attention: from '
        'one frame to the next a shape moves by little, and joint attention '
        'sees that as well. In the paper it is 3 points better. Both are '
        'behind factorized attention, as in the paper.',
        'At size 2 the square is worth as much as the cross; in the paper it '
        'is 0.2 points behind, which by the rule is no difference either.',
        'A rate of 0.004 was left out: after 600 updates most rows had their '
        'best run of it, and then seeds far apart (`baseline`: 66 and 43, '
        '`cross 1`: 61).',
    ])
