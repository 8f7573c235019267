# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Options, windows, frames and scores that online networks reject.

The contract tests the inputs that every network rejects.
"""
import math
from functools import cache

import numpy as np
import pytest
import torch
from online.networks import VARIANTS, detector_of, small_detector, video_of

from mmvidattn.online import (
    StreamSession,
    TeSTra,
    dense_features,
    make_stream_step,
)
from mmvidattn.online.event_detector import EventDetector

NAMES = 'background', 'jump', 'run'


# Models that no test changes.
small, variant_of = cache(small_detector), cache(
    lambda name: detector_of(VARIANTS[name]).eval())


def build_testra(**options):
    return TeSTra(dict(rgb=4), **{**dict(
        embed_dims=16, num_heads=2, ffn_dims=8), **options})


def mat(**options):
    return small_detector('MAT', **options)


def session(variant, **options):
    return StreamSession(variant_of(variant), **options)


def image_session(**options):
    return StreamSession(small('OnlineVideoEncoder'), **options)


def window(name, **change):
    """Run a network on windows of random features, with changes."""
    model = small(name) if name != 'TeSTra' else variant_of('box')
    N, L = (getattr(model.backbone, f'{kind}_memory_length')
            for kind in ('long', 'work'))
    inputs = dict(
        {key: x.expand(2, -1, -1) for key, x in video_of(
            model, N + L, next(model.parameters()).dtype).items()},
        padding_mask=torch.zeros(2, N, dtype=torch.bool))
    for key, function in change.items():
        inputs[key] = function(inputs[key])
    return model({key: x for key, x in inputs.items() if x is not None})


def other_rounds():
    model = mat(num_rounds=3).float()
    model({name: x[None] for name, x in
           video_of(model, 13, torch.float32).items()}, [{}], mode='loss')


def drop(x):
    """Leave an input out."""


def dense(name='MiniROAD', train=False, long=9, work=4, step=1):
    """Compute dense features of windows with these numbers of frames."""
    model = small_detector(name).train(train)
    frames = torch.arange(17)[::step, None]
    long = min(long, model.backbone.long_memory_length)
    return dense_features(model.backbone, video_of(model, 40),
                          frames + torch.arange(long),
                          frames + torch.arange(work))


def images(frames=torch.zeros(3, 32, 32), **frame):
    return image_session().push(dict(frames=frames, **frame))


def clip(**inputs):
    return small('OnlineVideoEncoder').backbone(inputs)


def no_backbone():
    model = small_detector('MiniROAD')
    model.backbone = torch.nn.Linear(1, 1)
    return make_stream_step(model)


def loaded(**options):
    return session('laplace', **options).load_state_dict(
        session('laplace').state_dict())


def events(change=None, tuned=None, **options):
    if tuned is not None:
        options['thresholds'] = {tuned.pop('name', 'jump'): tuned}
    detector = EventDetector(NAMES, **options)
    if change is not None:
        detector.set_threshold(*change)


CASES = [
    (build_testra, dict(num_heads=5),
     'embed_dims=16 is not divisible by num_heads=5'),
    (build_testra, dict(embed_dims=15, num_heads=3),
     'embed_dims must be even, got 15'),
    (build_testra, dict(encoder=[dict(num_queries=2)]),
     'encoder must be a list'),
    (build_testra, dict(encoder=[dict(num_queries=None, num_layers=1)]),
     "first num_queries .*num_queries': None"),
    (mat, dict(num_groups=5),
     'long_memory_length=9 is not divisible by num_groups=5'),
    (mat, dict(long_memory_length=6),
     r'at least num_groups \*\* 2 = 9, got 6'),
    (mat, dict(anticipation_rate=7), 'num_future_tokens must be at least'),
    (mat, dict(share=0.), 'share'),
    (mat, dict(long_memory_length=0), 'long_mem'),
    (small_detector, {'network': 'OnlineVideoEncoder',
                      'encoder.pattern': 'joint', 'encoder.decay': None,
                      'encoder.patch_frames': 1},
     'encoder must be a causal network'),
    (window, dict(name='TeSTra', flow=drop),
     r"inputs\['flow'\] must be .*got nothing"),
    (window, dict(name='TeSTra', rgb=lambda x: x[..., :9]),
     r"inputs\['rgb'\] must be \[B, T, 10\] .*17 <= T.* got \(2, 17, 9\)"),
    (window, dict(name='TeSTra', flow=lambda x: x[:1]), r'got \(1, 17, 6\)'),
    (window, dict(name='TeSTra', padding_mask=lambda x: x.float()),
     r"inputs\['padding_mask'\] must be bool"),
    (window, dict(name='TeSTra', padding_mask=lambda x: x[:, 1:]),
     r'\[B, N\] = \(2, 12\), got torch.bool \(2, 11\)'),
    (window, dict(name='MAT', rgb=lambda x: torch.cat([x, x[:, :1]], 1)),
     r"inputs\['rgb'\] .*10 <= T <= 13"),
    (window, dict(name='MAT', rgb=lambda x: x[:, :9]), 'got .2, 9, 32'),
    (other_rounds, {}, 'work_weights must have'),
    (dense, dict(step=2), 'consecutive windows'),
    (dense, dict(train=True), 'must be in eval mode'),
    (dense, dict(name='TeSTra', long=8), r'long_indices must be \[W, 9\]'),
    (dense, dict(name='TeSTra', work=3), r'work_indices must be \[W, 4\]'),
    (session, dict(variant='laplace', kernel='box'),
     "kernel must be one of 'window', 'smoothing' or None, got 'box'"),
    (session, dict(variant='lstr', kernel='smoothing'),
     'the model has positions in its long'),
    (session, dict(variant='long-memory', kernel='smoothing'),
     "has fusion='long'"),
    (session, dict(variant='short-only', kernel='smoothing'),
     'has no long memory'),
    (session, dict(variant='laplace', kernel='smoothing',
                   work_memory_sample_rate=5),
     r'work_memory_sample_rate > long_memory_sample_rate \(5 and 4\)'),
    (session, dict(variant='deep-gelu'),
     'first stage must have one layer .*, got 2'),
    (session, dict(variant='laplace', long_memory_sample_rate=0),
     'long_memory_sample_rate m'),
    (session, dict(variant='laplace', cuda_graph=True),
     'needs a model on a CUDA device, got one on cpu'),
    (loaded, dict(long_memory_sample_rate=3), 'the options of state'),
    (lambda: StreamSession(small_detector('MiniROAD').train()), {},
     'eval mode'),
    (no_backbone, {}, 'backbone .* one of .* got Linear'),
    (image_session, dict(kernel='smoothing'), 'is for TeSTra, got a Onl'),
    (lambda: image_session().skip(1, elapsed=-1.), {},
     'elapsed must be a non-negative'),
    (lambda: session('laplace').skip(1, elapsed=1.), {},
     'elapsed is only for models of videos'),
    (images, dict(frames=torch.zeros(3, 32, 30)),
     r'\[3, 32, 32\] or \[T, 3, 32, 32'),
    (images, dict(elapsed=math.nan), 'non-neg'),
    (images, dict(elapsed=-1.), 'non-neg'),
    (images, dict(elapsed=[1., 2.]), 'one for each'),
    (images, dict(elasped=1.), 'got frames, elasped'),
    (clip, {}, r'\[B, 3, T, H, W\] with T >= 1, got nothing'),
    (clip, dict(frames=torch.zeros(1, 3, 2, 32, 32),
                elapsed=torch.zeros(1, 3)), r'\[B, T\] = \[1, 2\]'),
    (events, dict(on=.3, off=.5), '0 < off <= on <= 1, got on=0.3, off=0.5'),
    (events, dict(min_duration=-1), 'min_duration must be .*got -1'),
    *((events, dict(tuned=rules), message) for rules, message in (
        (dict(name='background', on=.5, off=.3), 'must be an action'),
        (dict(on=.5), "thresholds of 'jump' must be numbers"),
        (dict(on=.5, off=.6), '0 < off <= on <= 1'),
        (dict(on=.5, off=.3, smoothing=-1), 'smoothing must be'),
        (dict(on=.5, off=.3, tau=1), "'tau'"))),
    (events, dict(change=('swim', .5)), "got 'swim'; the model has "),
    (events, dict(change=('jump', 0.)), 'on must be a number in .*got 0.0'),
    (events, dict(change=('jump', math.nan)), 'got nan'),
]


@pytest.mark.parametrize('function, arguments, message', CASES)
def test_rejects(function, arguments, message):
    with pytest.raises(ValueError, match=message):
        function(**arguments)


def test_steps_of_an_event_detector_must_advance():
    detector, scores = EventDetector(NAMES), np.array([0, .9, 0])
    detector.update(.75, 1, scores)
    for start, end in ((1, 1), (1, .5), (.5, .75), (.5, 1), (math.nan, 2),
                       (1, math.nan), (1, math.inf)):
        with pytest.raises(ValueError, match='a step must end after its start '
                           'and after the end of the previous step .1 s., got '
                           f'start={start:g} and end={end:g}'):
            detector.update(start, end, scores)
    # The action continues, and another source may start at 0.
    detector.update(1, 1.25, scores)
    assert len(detector.finish(1.25)) == 1
    assert detector.update(0, .25, scores) == []
