# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""References of all ops, and attentions as functions of raw q, k and v."""
import importlib
import inspect
import pkgutil
from types import SimpleNamespace

import torch

from mmvidattn import ops

# naive.OP is the reference of ops.OP.
naive = SimpleNamespace()
for _module in pkgutil.walk_packages(ops.__path__, f'{ops.__name__}.'):
    for _name, _value in vars(importlib.import_module(_module.name)).items():
        if _name.startswith('naive_'):
            setattr(naive, _name.removeprefix('naive_'), _value)


def in_parts(step, frames, *inputs, state=None):
    """Process inputs [B, T, *] in parts of some frames.

    Returns:
        The output of all frames, and the last state.
    """
    parts = []
    for part in zip(*(x.split(frames, dim=1) for x in inputs)):
        y, state = step(*part, state)
        parts.append(y)
    return torch.cat(parts, dim=1), state


class Attention:
    """An attention and its reference.

    Args:
        name: Name of the op.
        mapped: Kernel function of queries and keys, or None.
        extra: Function of the keys, a size and a generator that returns the
            op's arguments after q, k and v.
        half: The op takes half precision and autocast, in which it sums in
            float32.
        options: Options of op and reference.
    """

    def __init__(self, name, mapped=None, extra=None, half=True, **options):
        self.name, self.mapped, self._extra = name, mapped, extra
        self.half, self.options = half, options
        self.op, self.naive = getattr(ops, name), getattr(naive, name)
        self.takes_order = 'order' in inspect.signature(self.op).parameters

    def extra(self, k, size=7, generator=None):
        """Draw the arguments after q, k and v."""
        if self._extra is None:
            return ()
        generator = generator or torch.Generator().manual_seed(1)
        # Parameters stay in float32, as in a module.
        dtype = torch.promote_types(k.dtype, torch.float32)
        return tuple(x.to(dtype if self.half else k.dtype)
                     for x in self._extra(k, size, generator))

    def __call__(self, q, k, v, *extra, **options):
        return self._call(self.op, q, k, v, extra, options)

    def reference(self, q, k, v, *extra, **options):
        return self._call(self.naive, q, k, v, extra, options)

    def _call(self, function, q, k, v, extra, options):
        if self.mapped:
            q, k = (ops.feature_map(x, self.mapped) for x in (q, k))
        return function(q, k, v, *(extra or self.extra(k)), **self.options,
                        **options)


def _projection(k, size, generator):
    return ops.random_projection(3 * size, k.shape[-1], generator),


def _mixtures(k, size, generator):
    return tuple((torch.rand(2, k.shape[-3], size, generator=generator) - .5)
                 / 2)


def _powers(k, size, generator):
    return 1 + torch.randn(k.shape[-2:], generator=generator).abs(),


def _landmarks(number):
    return lambda k, size, generator: torch.randn(
        number, *k.shape[:-3], min(size, 5), *k.shape[-2:],
        generator=generator).unbind()


ATTENTIONS = {
    'softmax': Attention('softmax_attention', half=False),
    'linear': Attention('linear_attention', 'relu'),
    'clamped': Attention('linear_attention', 'relu', clamp_eps=True),
    'cosformer': Attention('cosformer_attention', 'relu'),
    'favor': Attention('performer_attention', extra=_projection),
    'linformer': Attention('linformer_attention', extra=_mixtures),
    'mala': Attention('mala_attention', 'elu+1'),
    'rala': Attention('rala_attention', 'elu+1'),
    'polaformer': Attention('polaformer_attention', extra=_powers),
    'smoothing': Attention('temporal_smoothing_attention', half=False),
    'orthoformer': Attention('orthoformer_attention', extra=_landmarks(1),
                             half=False),
    'lara': Attention('lara_attention', extra=_landmarks(2)),
    'lara-samples': Attention('lara_attention', extra=_landmarks(3)),
}
# Attentions whose sums are in float32 also with half precision.
SUMS = [name for name, case in ATTENTIONS.items() if case.half]
