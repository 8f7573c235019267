# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Rotary positions of tokens on a grid of up to three axes."""
from collections.abc import Sequence

import torch
from torch import Tensor

# Wavelengths are powers of this number, times 2 pi.
BASE = 10000.


def rotary_positions(x: Tensor,
                     shape: Sequence[int],
                     num_axes: int | None = None,
                     paired: bool = True,
                     span: int | None = None,
                     times: Tensor | None = None) -> Tensor:
    """Rotate pairs of channels of queries or keys by angles of positions.

    Each axis has an equal, even number of channels, at most ``D / num_axes``;
    the remaining channels stay unchanged. The channels of an axis are rotated
    in pairs, (0, 1), (2, 3), ..., by the position times the frequency of the
    pair. The product of a rotated query and key depends on the difference of
    their positions.

    Args:
        x: Queries or keys, [*, N, G, D].
        shape: Axes of the N tokens, in row-major order: (T, ), (H, W) or
            (T, H, W).
        num_axes: Number of the last axes whose positions count. Defaults to
            all axes.
        paired: Use the same frequency for both channels of a pair. With
            False, as released for V-JEPA 2, channel c has the frequency of
            pair ``c % (number of pairs)``; then the result is not a rotation,
            but the released weights expect it. Defaults to True.
        span: Scale the positions of rows and columns to
            [0, span - 1], for frames of any size. Defaults to None: positions
            are numbers of rows and columns.
        times: Positions of the T frames of each sample, [B, T], for x of
            [B, N, G, D] with three axes. Defaults to 0, 1, ..., T - 1.

    Returns:
        [*, N, G, D].

    Raises:
        ValueError: If ``shape`` does not have N tokens.
    """
    angles = _angles(x, shape, num_axes or len(shape), paired, span, times)
    width = angles.shape[-1]
    pairs = x[..., :width].unflatten(-1, (-1, 2))
    turned = torch.stack((-pairs[..., 1], pairs[..., 0]), dim=-1)
    # Sines and cosines are exact in half precision, too.
    y = pairs.flatten(-2) * angles.cos() + turned.flatten(-2) * angles.sin()
    return torch.cat([y.to(x.dtype), x[..., width:]], dim=-1)


def _angles(x: Tensor, shape: Sequence[int], num_axes: int, paired: bool,
            span: int | None, times: Tensor | None) -> Tensor:
    """Return the angle of each channel, [*, N, 1, num_axes * d]."""
    sizes = tuple(shape)[-num_axes:]
    count = torch.Size(shape).numel()
    if count != x.shape[-3]:
        raise ValueError(f'shape must have {x.shape[-3]} tokens, got '
                         f'{tuple(shape)} with {count}')
    pairs = x.shape[-1] // num_axes // 2
    dtype = torch.promote_types(x.dtype, torch.float32)
    frequencies = BASE**-(torch.arange(
        pairs, dtype=dtype, device=x.device) / max(pairs, 1))
    frequencies = frequencies.repeat_interleave(2) if paired else \
        frequencies.repeat(2)
    axes = []
    for axis, size in enumerate(sizes):
        places = torch.arange(size, dtype=dtype, device=x.device)
        if span is not None and num_axes - axis <= 2 and num_axes > 1:
            places = places * (span - 1) / max(size - 1, 1)
        axes.append(places)
    places = torch.cartesian_prod(*axes).view(-1, num_axes)
    if times is not None:
        frames = times.to(dtype).repeat_interleave(
            count // shape[0], dim=1).unsqueeze(-1)
        places = torch.cat(
            [frames, places[:, 1:].expand(len(times), -1, -1)], dim=-1)
    angles = (places.unsqueeze(-1) * frequencies).flatten(-2)
    if times is None:
        angles = angles.repeat(count // len(angles), 1)
    return angles.unsqueeze(-2)


def naive_rotary_positions(x: Tensor,
                           shape: Sequence[int],
                           num_axes: int | None = None,
                           paired: bool = True,
                           span: int | None = None,
                           times: Tensor | None = None) -> Tensor:
    """Reference of :func:`rotary_positions`, by channels.

    x is [N, G, D], and ``times`` is [T].
    """
    num_axes = num_axes or len(shape)
    d = x.shape[-1] // num_axes // 2 * 2
    places = torch.cartesian_prod(*map(torch.arange, shape)).view(len(x), -1)
    if times is not None:
        places[:, 0] = times[places[:, 0]]
    y = x.clone()
    for a, size in enumerate(tuple(shape)[-num_axes:]):
        place = places[:, a - num_axes, None].to(x.dtype)
        if span is not None and num_axes > 1 and num_axes - a <= 2:
            place = place * (span - 1) / max(size - 1, 1)
        for c in range(d):
            pair = c // 2 if paired else c % (d // 2)
            angle = place * BASE**(-pair / (d // 2))
            i = a * d + c
            other = -x[..., i + 1] if c % 2 == 0 else x[..., i - 1]
            y[..., i] = x[..., i] * angle.cos() + other * angle.sin()
    return y
