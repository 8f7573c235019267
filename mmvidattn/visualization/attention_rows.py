# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Rows of attention matrices, to draw and to measure."""
import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn


def iter_attention_rows(attention: nn.Module, q: Tensor, k: Tensor, v: Tensor,
                        queries: Tensor,
                        *shapes: tuple[int, ...]) -> Iterator[Tensor]:
    """Rows of the matrix A of an attention ``y = A v``, D at a time.

    The row of a query is the gradient of its output with respect to the
    values. So this is the matrix of any attention, however it is computed
    (softmax, factors, landmarks), and never more of it than the rows wanted
    for: a block of them is as large as ``v``. Each of the D channels serves
    another query.

    Args:
        attention: A :class:`mmvidattn.layers.BaseAttention`, or a function
            with its arguments.
        q: All queries of the sequences, [*, N, G, D].
        k: [*, M, G, D].
        v: [*, M, G, D].
        queries: Which rows, R indices into N.
        *shapes: The axes of N and of M, for an attention that takes them.

    Yields:
        [*, R', G, M], R' at most D, in the order of ``queries``.

    Raises:
        ValueError: If the attention is not linear in its values.
    """
    q, k = q.detach(), k.detach()
    v = v.detach().requires_grad_()
    with torch.enable_grad():
        y = attention(q, k, v, *shapes)
    tolerance = torch.finfo(y.dtype).eps**0.5
    for some in queries.to(y.device).split(y.shape[-1]):
        channels = torch.arange(len(some), device=y.device)
        of_queries = torch.zeros_like(y)
        of_queries[..., some, :, channels] = 1
        grad, = torch.autograd.grad(y, v, of_queries, retain_graph=True)
        rows = grad[..., :len(some)].movedim(-1, -3).transpose(-2, -1)
        with torch.no_grad():
            want = y[..., some, :, :]
            got = torch.einsum('...rgm,...mgd->...rgd', rows, v)
            wrong = (got - want).norm() > tolerance * want.norm()
        if wrong:
            raise ValueError(
                f'{type(attention).__name__} has no attention matrix: its '
                'result is not a matrix times the values')
        yield rows


def row_entropy(rows: Tensor) -> tuple[Tensor, Tensor]:
    """How spread out rows of attention are: their entropy.

    Weights below zero, which factorized attentions may have, count with
    their magnitude.

    Args:
        rows: [*, M].

    Returns:
        Entropy in nats, and the same divided by ``log M`` (1: uniform, 0: one
        key has it all), [*] each. NaN for a row without any weight.
    """
    share = rows.float().abs()
    share = share / share.sum(-1, keepdim=True)
    entropy = torch.special.entr(share).sum(-1)
    return entropy, entropy / max(math.log(rows.shape[-1]), 1e-12)


@dataclass
class CapturedAttention:
    """Inputs of the attention of a :class:`VideoSelfAttention`.

    Attributes:
        module: The VideoSelfAttention.
        grid_shape: Frames, rows and columns (T, H, W) of the tokens.
        q: Shifted, mapped and reweighted, as the attention takes them:
            [S, N, G, D], the S sequences of the first clip.
        k: [S, M, G, D].
        v: [S, M, G, D].
        shapes: The axes of N and of M, where the attention takes them.
    """
    module: nn.Module
    grid_shape: tuple[int, int, int]
    q: Tensor
    k: Tensor
    v: Tensor
    shapes: tuple[tuple[int, ...], ...]

    def locate(self, token: tuple[int, int, int]) -> tuple[int, int]:
        """The sequence and the query that the token (t, y, x) is."""
        if any(not 0 <= i < n for i, n in zip(token, self.grid_shape)):
            raise ValueError(
                f'the token (t, y, x) = {tuple(token)} is not one of the '
                f'{self.grid_shape} (T, H, W)')
        T, H, W = self.grid_shape
        t, y, x = token
        place = y * W + x
        if self.module.pattern == 'time':
            return place, t
        if self.module.pattern == 'joint':
            return 0, t * H * W + place
        return t, place

    def iter_rows(self, sequence: int, queries: Tensor) -> Iterator[Tensor]:
        """Rows of a sequence, [R', G, M]: see :func:`iter_attention_rows`."""
        q, k, v = (x[sequence:sequence + 1] for x in (self.q, self.k, self.v))
        for rows in iter_attention_rows(self.module.attention, q, k, v,
                                        queries, *self.shapes):
            yield rows[0]

    def volume(self, sequence: int, row: Tensor) -> Tensor:
        """A row [M] where its keys are, [T, H, W]; elsewhere NaN."""
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
    """Run ``model(*inputs, **kwargs)`` and keep what one attention was given.

    Args:
        model: A model that contains ``module``.
        module: A :class:`mmvidattn.layers.VideoSelfAttention`.
        *inputs: Inputs of the model.
        **kwargs: Likewise.
    """
    grids, calls = [], []

    def keep_grid(_, args: tuple) -> None:
        grids.append(tuple(args[0].shape[1:4]))

    def keep_call(_, args: tuple, output: Tensor) -> None:
        # A sequence of whole clips has no axis for the sequences of a clip.
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
        raise RuntimeError('the model has not called the attention')
    q, k, v, *shapes = calls[0]
    captured = CapturedAttention(module, grids[0], q, k, v, tuple(shapes))
    assert len(q) * q.shape[1] == math.prod(grids[0])
    return captured
