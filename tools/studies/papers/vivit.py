# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Claims of *ViViT: A Video Vision Transformer*."""
from study import Claim, Row, Study

IMAGE = {'model.backbone.init_cfg': dict(
    type='Pretrained', checkpoint='image_vit.pth')}


def _model(name: str, num_layers: int, **options) -> dict:
    """Models 2 to 4, of about as many multiply-accumulates as Model 1."""
    return {
        **IMAGE, 'model.backbone.model': name,
        'model.backbone.num_layers': num_layers,
        **{f'model.backbone.{key}': value for key, value in options.items()}
    }


STUDY = Study(
    title='ViViT: encodings, starts and factorizations',
    paper='https://arxiv.org/abs/2103.15691',
    task='from_image',
    config='vivit_tiny_motion',
    changes={
        'model.backbone.img_size': 32,
        'model.backbone.patch_size': 8,
        'model.backbone.embed_dims': 48,
        'model.backbone.num_layers': 3,
        'model.backbone.patch_init': 'central',
        'model.cls_head.in_channels': 48,
    },
    steps=500,
    batch_size=16,
    rates=(1e-3, 2e-3, 4e-3),
    measure='top-1 on Kinetics-400',
    rows={
        'Model 1': Row(IMAGE, 80.0),
        'Model 2': Row(_model('fact_encoder', 3, num_temporal_layers=1), 78.8),
        'Model 3': Row(_model('fact_attention', 2), 77.4, own_start=True),
        'Model 4': Row(_model('fact_dot', 3), 76.3),
        'Model 2, averaged frames': Row(
            _model('fact_encoder', 3, num_temporal_layers=0), 75.8),
        'Model 3, space first': Row(
            _model('fact_attention', 2, order='space_time'), own_start=True),
        'Model 3, time at random': Row(
            _model('fact_attention', 2, zero_init_temporal=False),
            own_start=True),
        'filter inflation': Row(
            {**IMAGE, 'model.backbone.patch_init': 'average'}, own_start=True),
        'random tubelets': Row(
            {**IMAGE, 'model.backbone.patch_init': 'random'}, own_start=True),
        'sampled frames': Row(
            {**IMAGE, 'model.backbone.tubelet_frames': 1,
             'model.backbone.sampled_frames': 4}, own_start=True),
        'no image model': Row(
            {'model.backbone.patch_init': 'random'}, own_start=True),
        'one frame': Row(IMAGE, view='middle'),
        'shuffled frames': Row(IMAGE, view='shuffled'),
    },
    claims=[
        Claim('Tubelets (central frame) are better than sampled frames',
              'Model 1', 'sampled frames', 'Table 1', paper=0.7),
        Claim('Central frames are a better start than filter inflation',
              'Model 1', 'filter inflation', 'Table 1', paper=1.6),
        Claim('Central frames are a better start than random tubelets',
              'Model 1', 'random tubelets', 'Table 1', paper=6.0),
        Claim('Filter inflation is a better start than random tubelets',
              'filter inflation', 'random tubelets', 'Table 1', paper=4.4),
        Claim('An image model is a better start than none', 'Model 1',
              'no image model', 'Sec. 3.4'),
        Claim('Model 1 is better than Model 2', 'Model 1', 'Model 2',
              'Table 2'),
        Claim('Model 2 is better than Model 3', 'Model 2', 'Model 3',
              'Table 2'),
        Claim('Model 3 is better than Model 4', 'Model 3', 'Model 4',
              'Table 2'),
        Claim('A temporal encoder is better than the mean of frames',
              'Model 2', 'Model 2, averaged frames', 'Table 2'),
        Claim('The order of attentions in Model 3 does not matter', 'Model 3',
              'Model 3, space first', 'Sec. 3.3', equal=True),
        Claim('Temporal attention should start as the identity', 'Model 3',
              'Model 3, time at random', 'Sec. 3.4'),
    ],
    notes=[
        'Tubelets of two frames show most of the motion: with sampled frames '
        'the same model ends 42 points lower, and Models 1 to 4 lie within 4 '
        'points.',
        'Model 2 is worse than Model 3 here, not better. Its temporal encoder '
        'has one token of each moment, in which all places are mixed, and '
        'these clips differ in where things go; it adds nothing to the mean '
        'over time that twelve seeds would show.',
        'The order of the attentions matters here, where there are two '
        'blocks, each of which sees through one attention what the other '
        'has found.',
        'Temporal attention that starts as the identity ends below one that '
        'starts at random. It is meant to keep what an image model knows, '
        'and that is worth half a point here; in 500 updates it has to be '
        'left behind first.',
    ])
