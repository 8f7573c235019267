# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Small TeSTra and LSTR detectors, with the options of the reference."""
from mmaction.registry import MODELS
from mmengine.registry import init_default_scope

# Our names of the reference's options.
NAMES = dict(
    long='long_memory_length', work='work_memory_length',
    tokens='num_anticipation_tokens', long_pos='long_memory_pos_embed',
    work_pos='work_memory_pos_embed')
VARIANTS = {
    'box': {},
    'laplace': dict(decay=0.7),
    'no-fuse': dict(fusion='none'),
    'lstr': dict(fusion='none', long_pos=True),
    'long-memory': dict(fusion='long', decay=0.7),
    'long-memory-positions': dict(fusion='long', long_pos=True),
    'short-only': dict(long=0, tokens=2),
    'anticipation': dict(tokens=3, decay=0.9, num_heads=4),
    'no-positions': dict(work_pos=False, tokens=2),
    'deep-gelu': dict(encoder=((3, 2), (5, 1), (4, 1)), num_layers=3,
                      act='gelu'),
    'shallow': dict(encoder=((3, 1), ), num_layers=1, tokens=1),
    'lstr-refined': dict(encoder=((4, 1), (None, 2)), fusion='none',
                         long_pos=True),
    'verbs-and-nouns': dict(verbs=4, nouns=5, tokens=2),
}


def detector_of(options, **backbone):
    """Build our model with options of the reference."""
    options = dict(options)
    head = dict(num_classes=options.pop('classes', 7),
                num_verbs=options.pop('verbs', None),
                num_nouns=options.pop('nouns', None))
    rgb, flow = options.pop('in_channels', (10, 6))
    encoder = options.pop('encoder', ((4, 1), (6, 2)))
    kwargs = dict(embed_dims=16, num_heads=2, ffn_dims=24,
                  long_memory_length=12, work_memory_length=5, drop_rate=0.)
    kwargs.update({NAMES.get(k, k): v for k, v in options.items()})
    kwargs.update(backbone)
    init_default_scope('mmaction')
    return MODELS.build(dict(
        type='OnlineActionDetector',
        backbone={
            'type': 'TeSTra',
            'in_channels': dict(rgb=rgb, flow=flow),
            'encoder': [dict(num_queries=n, num_layers=depth)
                        for n, depth in encoder],
            **kwargs
        },
        cls_head=dict(type='OnlineActionHead', score='logit',
                      in_channels=kwargs['embed_dims'], **head)))


def thumos_detector(**backbone):
    """Build our model with the sizes for THUMOS'14."""
    sizes = dict(
        in_channels=dict(rgb=2048, flow=1024), embed_dims=1024, num_heads=16,
        ffn_dims=1024, long_memory_length=512, work_memory_length=32,
        encoder=[dict(num_queries=16, num_layers=1),
                 dict(num_queries=32, num_layers=2)])
    return detector_of({}, **sizes, **backbone).eval()
