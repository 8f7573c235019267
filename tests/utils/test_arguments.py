# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Wrong arguments, generated for every class of ours that a config names."""
import inspect
import math
import random
import typing
import warnings
from collections.abc import Callable, Mapping, Sequence

import mmaction.registry
import mmengine.registry
import numpy as np
import pytest
import torch
from mmengine.registry import Registry

from mmvidattn.layers import FeatureFixation, NeighborShift
from mmvidattn.utils.arguments import check_arguments
from mmvidattn.utils.checks import check_fraction

# What the rest of a call is, where an argument has no default.
REQUIRED = dict(
    head_dims=8, num_heads=2, seq_shape=(4, 4), num_classes=5,
    in_channels=16, ann_file='no_such_file.txt', pipeline=[], clip_len=8,
    channels=8, mode='tsm', crop_size=224, transforms=[],
    out_file='scores.json',
    class_counts=[1, 2, 3], model='timm.no_such_model', dataset=dict(type='x'),
    optim_wrapper_cfg=dict(optimizer=dict(type='SGD', lr=0.1)),
    backbone=dict(type='x'), cls_head=dict(type='x'), teacher=dict(type='x'))
# Integers from 1 and shares of one, wherever they come.
COUNTS = {
    'num_layers', 'num_heads', 'num_frames', 'num_classes', 'embed_dims',
    'head_dims', 'hidden_dims', 'ffn_dims', 'in_channels', 'patch_size',
    'patch_stride', 'num_landmarks', 'num_features', 'num_projections',
    'clip_len', 'num_clips', 'frame_interval', 'num_views', 'num_ops',
    'num_verbs', 'num_nouns', 'num_actions', 'work_memory_length', 'topk', 'k',
    'long_rate', 'work_rate', 'work_steps', 'dense_batch_size',
    'tubelet_frames', 'sampled_frames', 'crop_size',
    'patch_frames', 'window_frames', 'size', 'divisor', 'segment_frames',
    'num_batches', 'img_size'}
NOT_NEGATIVE = {
    'drop_rate', 'drop_path_rate', 'dropout_ratio', 'dropout', 'prob',
    'feature_drop_rate', 'token_dropout_ratio', 'gray_prob', 'loss_weight',
    'init_std', 'embed_init_std', 'long_memory_length', 'magnitude',
    'num_anticipation_tokens', 'num_temporal_layers', 'shift_fraction',
    'anticipation_steps',
    'patch_padding', 'max_failures', 'max_skips', 'magnitude_std', 'smooth'}
POSITIVE = {'eps', 'norm_eps', 'mlp_ratio', 'fps', 'video_fps', 'decay',
            'feature_rate', 'timeout', 'target_fps'}
# At most as many that are not told by name as one in twenty.
NAMED = 0.95


def classes():
    """Ours that have a constructor of their own."""
    found = {}
    for module in mmaction.registry, mmengine.registry:
        for registry in vars(module).values():
            if isinstance(registry, Registry):
                found.update((cls.__name__, cls)
                             for cls in registry.module_dict.values()
                             if cls.__module__.startswith('mmvidattn.'))
    # Those that options in dicts of a config are handed to.
    found |= {cls.__name__: cls for cls in (FeatureFixation, NeighborShift)}
    # A stand-in of a class that is missing, and what is handed its runner.
    return {name: cls for name, cls in sorted(found.items())
            if '__init__' in vars(cls) and name not in ('DRN', 'SafeRunner')}


def wrong_values(name, hint):
    """Values of another type, and numbers that make no sense."""
    options = typing.get_args(hint) if typing.get_origin(hint) in (
        typing.Union, getattr(__import__('types'), 'UnionType')) else (hint, )
    kinds = {typing.get_origin(option) or option for option in options}
    if kinds & {typing.Any, inspect.Parameter.empty}:
        return
    numbers = bool(kinds & {int, float})
    pools = [kind for kind in kinds if isinstance(kind, type)]
    sequences = any(issubclass(kind, Sequence) and kind is not str
                    for kind in pools)
    mappings = any(issubclass(kind, Mapping) for kind in pools)
    if type(None) not in kinds:
        yield None
    if str not in kinds:
        yield 'x'
    if Callable not in kinds:
        yield math.nan
        if not numbers:
            yield 3
        if float not in kinds:
            yield 1.5
        yield math.inf
    if not sequences:
        yield []
    if not mappings:
        yield {}
    if numbers and bool not in kinds:
        yield True
    if numbers and name in COUNTS | NOT_NEGATIVE | POSITIVE:
        yield -1
        if name not in NOT_NEGATIVE:
            yield 0


def cases():
    for cls_name, cls in classes().items():
        hints = typing.get_type_hints(cls.__init__)
        parameters = list(inspect.signature(cls).parameters.values())
        parameters = [p for p in parameters if p.kind not in (
            p.VAR_POSITIONAL, p.VAR_KEYWORD)]
        rest = {p.name: REQUIRED[p.name] for p in parameters
                if p.default is p.empty and p.name in REQUIRED}
        if cls_name in ('CausalTransformer', 'MAT', 'MiniROAD', 'TeSTra'):
            rest = dict(in_channels=dict(rgb=8))
        for p in parameters:
            for value in wrong_values(p.name, hints.get(p.name, p.empty)):
                yield cls, p.name, value, {**rest, p.name: value}


def outcome(cls, name, kwargs):
    """'named', 'accepted' or what else was raised."""
    try:
        with torch.device('meta'), warnings.catch_warnings():
            warnings.simplefilter('ignore')
            cls(**kwargs)
    except ValueError as error:
        return 'named' if name in str(error) else f'ValueError: {error}'
    except Exception as error:
        return f'{type(error).__name__}: {error}'
    return 'accepted'


def check(sample):
    results = {}
    for cls, name, value, kwargs in sample:
        results[cls.__name__, name, repr(value)] = outcome(cls, name, kwargs)
    accepted = [case for case, got in results.items() if got == 'accepted']
    others = {case: got for case, got in results.items()
              if got not in ('named', 'accepted')}
    rejected = len(results) - len(accepted)
    print(f'{len(results)} wrong arguments of {len(classes())} classes: '
          f'{len(accepted)} accepted, of {rejected} rejected '
          f'{rejected - len(others)} by a ValueError that names them '
          f'({(rejected - len(others)) / rejected:.1%})')
    senseless = [case for case in accepted if case[2] in ('-1', '0')]
    assert not senseless
    assert rejected - len(others) >= NAMED * rejected, others
    assert len(accepted) <= (1 - NAMED) * len(results), accepted


def test_wrong_arguments_are_named():
    """A part of them; the slow test takes all."""
    everything = list(cases())
    assert len(everything) > 2000
    check(random.Random(0).sample(everything, 400))


def test_every_class_checks_its_arguments():
    for name, cls in classes().items():
        named = [p for p in inspect.signature(cls).parameters.values()
                 if p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)]
        # What ``functools.wraps`` leaves behind.
        assert not named or hasattr(cls.__init__, '__wrapped__'), name


@pytest.mark.slow
def test_all_wrong_arguments_are_named():
    check(cases())


@check_arguments(share=check_fraction, eps=None)
class _Example:

    def __init__(self, num_heads: int, share: float = 0.5,
                 sizes: Sequence[tuple[int, int]] = ((1, 2), ),
                 eps: float = 0., name: str | None = None,
                 layers: dict[str, int] | None = None, flag: bool = False,
                 anything=None, *args, **kwargs) -> None:
        self.num_heads = num_heads


@pytest.mark.parametrize('kwargs, message', [
    (dict(num_heads=0), 'num_heads must be a positive integer, got 0'),
    (dict(num_heads='2'), "num_heads must be an integer, got '2'"),
    (dict(num_heads=True), 'num_heads must be an integer, got True'),
    (dict(num_heads=2.), 'num_heads must be an integer, got 2.0'),
    (dict(share=1.5), r'share must be a number in \[0, 1\], got 1.5'),
    (dict(share=math.inf), 'share must be a number, got inf'),
    (dict(sizes=[(1, 2), (3, )]), 'sizes must be a sequence of a sequence of'),
    (dict(sizes='ab'), 'sizes must be a sequence'),
    (dict(eps='x'), "eps must be a number, got 'x'"),
    (dict(name=3), 'name must be text or None, got 3'),
    (dict(layers=dict(a='x')), 'layers must be a dict or None'),
    (dict(flag=1), 'flag must be True or False, got 1')])
def test_names_what_is_wrong(kwargs, message):
    with pytest.raises(ValueError, match=message):
        _Example(**{'num_heads': 2, **kwargs})


def test_what_is_right_passes():
    _Example(np.int64(2), 1, [[1, 2], (3, 4)], -1., None, {}, np.bool_(True),
             'anything', 'x', other=math.nan)
    assert list(inspect.signature(_Example).parameters)[0] == 'num_heads'
    with pytest.raises(TypeError, match='num_heads'):
        _Example()
