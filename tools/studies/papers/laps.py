# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Claims of *LAPS: Leap Attention and Periodic Shift*."""
from study import Claim, Row, Study


def _mixing(attention: str, shift: str) -> dict:
    return {'model.backbone.attention': attention,
            'model.backbone.shift': shift}


def _pyramid(*levels: int) -> dict:
    return {'model.backbone.pyramid': levels}


STUDY = Study(
    title='LAPS: leap attention and periodic shift',
    paper='https://arxiv.org/abs/2207.05526',
    task='clip_model',
    config='laps_tiny_motion',
    changes={
        'model.backbone.img_size': 32,
        'model.backbone.arch': dict(
            _delete_=True, stem_channels=12, embed_dims=48, depths=(1, 2, 1),
            num_heads=4),
        'model.cls_head.in_channels': 96,
    },
    steps=600,
    batch_size=16,
    rates=(1e-3, 2e-3, 4e-3),
    measure='top-1 on Kinetics-400',
    rows={
        'LA + P-Shift': Row(paper=76.04),
        '2D': Row(_mixing('2d', 'none'), 74.00),
        '3D': Row(_mixing('3d', 'none'), 76.31),
        'plain shift': Row(_mixing('2d', 'plain'), 74.86),
        'P-Shift': Row(_mixing('2d', 'periodic'), 75.19),
        'LA': Row(_mixing('leap', 'none'), 75.84),
        'R = 1': Row(_pyramid(1), 75.86),
        'R = 2': Row(_pyramid(2), 75.82),
        'R = 3': Row(_pyramid(3), 75.55),
        'one frame': Row(view='middle'),
        'shuffled frames': Row(view='shuffled'),
    },
    claims=[
        Claim('Leap attention is better than 2D attention', 'LA', '2D',
              'Table 1'),
        Claim('The plain shift helps 2D attention', 'plain shift', '2D',
              'Table 1'),
        Claim('The periodic shift helps 2D attention', 'P-Shift', '2D',
              'Table 1'),
        Claim('The periodic shift is better than the plain one', 'P-Shift',
              'plain shift', 'Table 1'),
        Claim('Leap attention is better than the periodic shift', 'LA',
              'P-Shift', 'Table 1'),
        Claim('The periodic shift helps leap attention', 'LA + P-Shift', 'LA',
              'Table 1'),
        Claim('Leap attention helps the periodic shift', 'LA + P-Shift',
              'P-Shift', 'Table 1'),
        Claim('3D attention is better than 2D attention', '3D', '2D',
              'Table 1'),
        Claim('3D attention is still better than both together', '3D',
              'LA + P-Shift', 'Table 1'),
        Claim('Several leaps are better than the longest', 'LA + P-Shift',
              'R = 1', 'Table 2'),
        Claim('Several leaps are better than the middle one', 'LA + P-Shift',
              'R = 2', 'Table 2'),
        Claim('Several leaps are better than the shortest', 'LA + P-Shift',
              'R = 3', 'Table 2'),
        Claim('The longest leap is better than the middle one', 'R = 1',
              'R = 2', 'Table 2'),
        Claim('The middle leap is better than the shortest', 'R = 2', 'R = 3',
              'Table 2'),
    ],
    notes=[
        'Attention alone, leaping or in 3D, is blind to the order of frames: '
        'it ends where the model with both ends on shuffled frames. It finds '
        'the line along which a shape moves, and not the direction. The '
        'shifts tell one frame from the next, and direction is all that is '
        'asked for here; on Kinetics-400 it hardly matters. That is why the '
        'periodic shift is better than leap attention here, and both '
        'together better than 3D attention.',
        'The shorter a leap, the better it does alone: shapes are followed '
        'most easily where they have moved least. In the paper the longest '
        'one does best by a little.',
    ])
