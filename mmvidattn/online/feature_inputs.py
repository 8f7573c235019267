# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Inputs of networks of feature streams, and the features of entire videos."""
import math
from collections.abc import Mapping

import torch
from torch import Tensor, nn


class FeatureProjection(nn.Module):
    """Linear layer and ReLU on the concatenated features of all modalities.

    Args:
        in_channels: Channels of each modality, in order.
        embed_dims: Channels C of a token.
        with_norm: Add LayerNorm between layer and ReLU. Defaults to False.
    """

    def __init__(self, in_channels: Mapping[str, int], embed_dims: int,
                 with_norm: bool = False) -> None:
        super().__init__()
        self.in_channels = dict(in_channels)
        self.projection = nn.Linear(sum(self.in_channels.values()), embed_dims)
        self.norm = nn.LayerNorm(embed_dims) if with_norm else nn.Identity()

    def forward(self, features: Mapping[str, Tensor]) -> Tensor:
        """Map modalities [*, T, channels] to tokens [*, T, C]."""
        x = torch.cat([features[name] for name in self.in_channels], dim=-1)
        return self.norm(self.projection(x)).relu()


def sinusoidal_positions(length: int, embed_dims: int) -> Tensor:
    """Return sinusoidal position embeddings, sine and cosine in turn.

    `Attention is all you need <https://arxiv.org/abs/1706.03762>`_, 3.5.

    Args:
        length: Number of positions.
        embed_dims: Channels C, an even number.

    Returns:
        float32, [length, C].

    Raises:
        ValueError: If ``embed_dims`` is odd.
    """
    if embed_dims % 2:
        raise ValueError(f'embed_dims must be even, got {embed_dims}')
    rates = torch.exp(
        torch.arange(0, embed_dims, 2) * (-math.log(1e4) / embed_dims))
    angles = torch.arange(length)[:, None] * rates
    return torch.stack([angles.sin(), angles.cos()], dim=-1).flatten(1)


def check_features(inputs: Mapping[str, Tensor],
                   in_channels: Mapping[str, int],
                   min_length: int,
                   max_length: int | None = None) -> dict[str, Tensor]:
    """Return the features of windows, without other entries.

    Args:
        inputs: ``{modality: features}``, each [B, T, channels].
        in_channels: Channels of each modality.
        min_length: Minimum length T.
        max_length: Maximum length T. Defaults to no limit.
    """
    lead = None
    for name, channels in in_channels.items():
        shape = tuple(inputs[name].shape) if name in inputs else ()
        lead = lead or shape[:2]
        if shape != (*lead, channels) or lead[1] < min_length or (
                max_length is not None and lead[1] > max_length):
            most = '' if max_length is None else f' <= {max_length}'
            raise ValueError(
                f'inputs[{name!r}] must be [B, T, {channels}] with '
                f'{min_length} <= T{most}, and B and T equal for all '
                f'modalities, got {shape or "nothing"}')
    return {name: inputs[name] for name in in_channels}


def check_padding_mask(inputs: Mapping[str, Tensor],
                       features: Mapping[str, Tensor],
                       long_memory_length: int) -> Tensor | None:
    """Return the padding mask of windows, if there is one.

    Args:
        inputs: Inputs with an optional entry ``padding_mask``, bool, [B, N].
        features: Features of :func:`check_features`.
        long_memory_length: Samples N of the long memory.
    """
    mask = inputs.get('padding_mask')
    shape = len(next(iter(features.values()))), long_memory_length
    if mask is not None and (mask.dtype != torch.bool
                             or tuple(mask.shape) != shape):
        raise ValueError(
            f"inputs['padding_mask'] must be bool, [B, N] = {shape}, got "
            f'{mask.dtype} {tuple(mask.shape)}')
    return mask


def gather_rows(rows: Tensor, indices: Tensor) -> Tensor:
    """Return ``rows[indices]``, several times as fast on a CPU."""
    return rows.index_select(0, indices.flatten()).unflatten(0, indices.shape)


@torch.no_grad()
def dense_features(model: nn.Module,
                   features: Mapping[str, Tensor],
                   long_indices: Tensor,
                   work_indices: Tensor,
                   padding_mask: Tensor | None = None,
                   batch_size: int = 32) -> Tensor:
    """Compute the features of the last step of many windows of one video.

    Each frame is projected once, and windows gather the projections of their
    frames. Later layers compute only the last step of the work memory and the
    anticipated steps.

    Args:
        model: ``TeSTra``, ``MiniROAD``, ..., in eval mode.
        features: ``{modality: features}`` of the entire video, [T, channels].
        long_indices: Frames of each window's long memory, [W, N].
        work_indices: Frames of each window's work memory, [W, L].
        padding_mask: Bool, [W, N], True where the long memory is padded.
        batch_size: Number of windows per batch. Defaults to 32.

    Returns:
        The last 1 + A features that ``model`` returns for each window,
        [W, 1 + A, C].

    Raises:
        ValueError: If the model is in training mode, or the windows have the
            wrong number of frames.
    """
    if model.training:
        raise ValueError('model must be in eval mode for dense_features; call '
                         'model.eval()')
    for name, indices, length in (
        ('long_indices', long_indices, model.long_memory_length),
        ('work_indices', work_indices, model.work_memory_length)):
        if indices.dim() != 2 or indices.shape[1] != length:
            raise ValueError(f'{name} must be [W, {length}], got '
                             f'{tuple(indices.shape)}')
    return model.dense(features, long_indices, work_indices, padding_mask,
                       batch_size)
