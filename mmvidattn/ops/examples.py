# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Small example arguments of every op that has backends.

Their sizes and dtypes suit the backends, so a backend that rejects its
example does not run on this machine.
"""
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import torch
from torch import Tensor

from .depthwise_conv import depthwise_conv
from .dispatch import explain, use_backends
from .linear import linear
from .packed_linear import pack_weight, packed_linear
from .patch_conv import patch_conv
from .temporal_smoothing.rings import push_row
from .video_linear_attention import Options, video_linear_attention


class Example(NamedTuple):
    """Example call of an op.

    Attributes:
        op: Dispatched op.
        tensors: Tensor arguments, in the op's order.
        options: Keyword arguments.
        is_trained: True if the op supports gradients.
        in_place: True if the op writes its result to its first tensor.
    """
    op: Callable
    tensors: tuple[Tensor, ...]
    options: dict[str, Any] = {}
    is_trained: bool = True
    in_place: bool = False


def make_examples(device: torch.device | str) -> Iterator[Example]:
    """Yield one example of each op, in float32."""
    generator = torch.Generator().manual_seed(0)

    def random(*shape: int) -> Tensor:
        return torch.randn(*shape, generator=generator).to(device)

    def integers(*values: Any) -> Tensor:
        return torch.tensor(values, device=device)

    yield Example(depthwise_conv, (
        random(1, 4, 8, 8, 16), random(16, 1, 3, 3, 3), random(16)))
    yield Example(linear, (random(64, 512), random(256, 512), random(256)))
    weight = random(512, 512)
    yield Example(packed_linear, (random(8, 512), weight, random(512)),
                  dict(packed=pack_weight(weight)), is_trained=False)
    yield Example(patch_conv, (
        random(1, 4, 16, 16, 3), random(32, 3, 2, 4, 4), random(32)))
    yield Example(
        push_row, (random(2, 8, 16), integers(3, 11), random(2, 16),
                   integers(True, False)), is_trained=False, in_place=True)
    yield Example(video_linear_attention, (random(1, 4, 6, 6, 3 * 32), ),
                  dict(options=Options(num_heads=2)))


def compare(example: Example, training: bool
            ) -> tuple[str | None, dict[str, str], float]:
    """Compare an example's chosen backend with the plain code in float64.

    Returns:
        The two results of :func:`mmvidattn.ops.dispatch.explain`, and the
        largest :func:`relative_difference` of results and gradients.
    """
    tensors = _copies(example, torch.float32, training)
    with torch.set_grad_enabled(training):
        chosen, reasons = explain(example.op, *tensors, **example.options)
        got = _run(example, tensors, training)
        with use_backends(False):
            expected = _run(
                example, _copies(example, torch.float64, training), training)
    differences = map(relative_difference, got, expected)
    # Use torch's maximum, which keeps NaN, unlike Python's.
    return chosen, reasons, torch.tensor([*differences]).max().item()


def relative_difference(got: Tensor, expected: Tensor) -> float:
    """Return RMS(got - expected) / RMS(expected)."""
    got, expected = got.detach().double(), expected.detach().double()
    return ((got - expected).norm() / expected.norm()).item()


def _copies(example: Example, dtype: torch.dtype,
            training: bool) -> list[Tensor]:
    return [x.to(dtype, copy=True).requires_grad_(training)
            if x.is_floating_point() else x for x in example.tensors]


def _run(example: Example, tensors: list[Tensor],
         training: bool) -> list[Tensor]:
    result = example.op(*tensors, **example.options)
    if example.in_place:
        result = tensors[0]
    if not training:
        return [result]
    return [result, *torch.autograd.grad(
        result.square().sum(),
        [x for x in tensors if x.requires_grad])]
