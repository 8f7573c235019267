# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Rows of attention matrices, for images and measurements."""
import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn


def iter_attention_rows(attention: nn.Module, q: Tensor, k: Tensor, v: Tensor,
                        queries: Tensor,
                        *shapes: tuple[int, ...]) -> Iterator[Tensor]:
    """Compute rows of the matrix A of an attention ``y = A v``.

    If an attention is linear in its values (softmax, factorized, landmarks),
    the row of a query is the gradient of the query's output with respect to
    the values. One backward pass computes D rows, because it uses each of the
    D channels for a different query. It needs as much memory as ``v``.

    Args:
        attention: A :class:`mmvidattn.layers.BaseAttention`, or a function
            with the same arguments.
        q: All queries of the sequences, [*, N, G, D].
        k: Keys [*, M, G, D].
        v: Values [*, M, G, D].
        queries: R indices into N.
        *shapes: Axes of N and of M, for an attention that needs them.

    Yields:
        Rows [*, R', G, M] with R' <= D, in the order of ``queries``.

    Raises:
        ValueError: If the attention is not linear in its values.
    """
    q, k = q.detach(), k.detach()
    v = v.detach().requires_grad_()
    with torch.enable_grad():
        y = attention(q, k, v, *shapes)
    tolerance = torch.finfo(y.dtype).eps**0.5
    for block in queries.to(y.device).split(y.shape[-1]):
        channels = torch.arange(len(block), device=y.device)
        grad_y = torch.zeros_like(y)
        grad_y[..., block, :, channels] = 1
        grad, = torch.autograd.grad(y, v, grad_y, retain_graph=True)
        # [*, M, G, R'] -> [*, R', G, M]
        rows = grad[..., :len(block)].movedim(-1, -3).transpose(-2, -1)
        with torch.no_grad():
            expected = y[..., block, :, :]
            got = torch.einsum('...rgm,...mgd->...rgd', rows, v)
            wrong = (got - expected).norm() > tolerance * expected.norm()
        if wrong:
            raise ValueError(
                f'{type(attention).__name__} does not compute an attention '
                'matrix times the values')
        yield rows


def row_entropy(rows: Tensor) -> tuple[Tensor, Tensor]:
    """Compute the entropy of attention rows.

    Negative weights, which factorized attention may have, are replaced by
    their magnitude.

    Args:
        rows: Rows [*, M].

    Returns:
        Entropy in nats, and entropy divided by ``log M`` (1 for a uniform
        row, 0 for a single key), [*] each. NaN for a row of zeros.
    """
    share = rows.float().abs()
    share = share / share.sum(-1, keepdim=True)
    entropy = torch.special.entr(share).sum(-1)
    return entropy, entropy / max(math.log(rows.shape[-1]), 1e-12)


@dataclass
class CapturedAttention:
    """Inputs of the attention inside a :class:`VideoSelfAttention`.

    Attributes:
        module: The ``VideoSelfAttention``.
        grid_shape: Shape (T, H, W) of the token grid.
        q: Queries [S, N, G, D] of the S sequences of the first clip, after
            shifts, feature map and reweighting.
        k: Keys [S, M, G, D].
        v: Values [S, M, G, D].
        shapes: Axes of N and of M if the attention needs them, else empty.
    """
    module: nn.Module
    grid_shape: tuple[int, int, int]
    q: Tensor
    k: Tensor
    v: Tensor
    shapes: tuple[tuple[int, ...], ...]

    def locate(self, token: tuple[int, int, int]) -> tuple[int, int]:
        """Return the indices of a token's sequence and of its query."""
        if any(not 0 <= i < n for i, n in zip(token, self.grid_shape)):
            raise ValueError(
                f'token (t, y, x) must be inside of (T, H, W) = '
                f'{self.grid_shape}, got {tuple(token)}')
        T, H, W = self.grid_shape
        t, y, x = token
        place = y * W + x
        if self.module.pattern == 'time':
            return place, t
        if self.module.pattern == 'joint':
            return 0, t * H * W + place
        return t, place

    def iter_rows(self, sequence: int, queries: Tensor) -> Iterator[Tensor]:
        """Yield rows [R', G, M] of a sequence, like iter_attention_rows."""
        q, k, v = (x[sequence:sequence + 1] for x in (self.q, self.k, self.v))
        for rows in iter_attention_rows(self.module.attention, q, k, v,
                                        queries, *self.shapes):
            yield rows[0]

    def volume(self, sequence: int, row: Tensor) -> Tensor:
        """Place a row [M] at its keys in [T, H, W]; NaN elsewhere."""
        T, H, W = self.grid_shape
        volume = row.new_full((T, H, W), torch.nan)
        pattern = self.module.pattern
        if pattern == 'time':
            volume[:, sequence // W, sequence % W] = row
        elif pattern == 'joint':
            volume[:] = row.view(T, H, W)
        elif pattern == 'space':
            volume[sequence] = row.view(H, W)
        else:
            frames = self.module._window(T, row.device)[sequence]
            volume[frames] = row.view(-1, H, W)
        return volume


def capture_attention(model: nn.Module, module: nn.Module, *inputs: Any,
                      **kwargs: Any) -> CapturedAttention:
    """Run ``model(*inputs, **kwargs)`` and capture one attention's inputs.

    Args:
        model: Model that contains ``module``.
        module: The :class:`mmvidattn.layers.VideoSelfAttention` to capture.
        *inputs: Inputs of the model.
        **kwargs: Inputs of the model by name.
    """
    grids, calls = [], []

    def keep_grid(_, args: tuple) -> None:
        grids.append(tuple(args[0].shape[1:4]))

    def keep_call(_, args: tuple, output: Tensor) -> None:
        # With one sequence per clip, the axis of sequences [S] is missing.
        first = slice(0, 1) if args[0].dim() == 4 else 0
        calls.append((*(x[first] for x in args[:3]), *args[3:]))

    handles = (module.register_forward_pre_hook(keep_grid),
               module.attention.register_forward_hook(keep_call))
    try:
        with torch.no_grad():
            model(*inputs, **kwargs)
    finally:
        for handle in handles:
            handle.remove()
    if not calls:
        raise RuntimeError('the model did not call the attention')
    q, k, v, *shapes = calls[0]
    captured = CapturedAttention(module, grids[0], q, k, v, tuple(shapes))
    assert len(q) * q.shape[1] == math.prod(grids[0])
    return captured
