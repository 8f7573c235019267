# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn

from ..layers.temporal import FrameMixing
from ..utils.positions import resize_positions
from .base_video_transformer import BaseBackbone, run_blocks


def choose_arch(zoo: dict[str, dict], arch: str | dict) -> dict[str, Any]:
    """Settings of an architecture: a name of ``zoo``, or all of them.

    Raises:
        ValueError: If there is no such name, or the settings are not those.
    """
    if isinstance(arch, str):
        if arch not in zoo:
            raise ValueError(
                f'arch must be one of {", ".join(zoo)}, got {arch!r}')
        return zoo[arch]
    wanted = set(next(iter(zoo.values())))
    if set(arch) != wanted:
        raise ValueError(f'arch must be a name or have {sorted(wanted)}, got '
                         f'{sorted(arch)}')
    for name, example in next(iter(zoo.values())).items():
        value = arch[name]
        if isinstance(example, int):
            if value < 1:
                raise ValueError(
                    f'{name} of arch must be 1 at least, got {value}')
        elif len(value) != len(example) or min(value) < 1:
            raise ValueError(f'{name} of arch must be {len(example)} positive '
                             f'numbers, one of each stage, got {value}')
    return arch


class BaseFrameTransformer(BaseBackbone):
    """What the transformers of frames share: clips to frames, the mixing.

    A subclass is a network of images whose attentions take their
    :class:`mmvidattn.layers.temporal.FrameMixing` from :meth:`mixing`.

    Args:
        num_frames: Frames T of a clip.
        attention: '2d', '3d' or 'leap'.
        shift: One of ``shifts``.
        pyramid: Levels R of leap attention; the i-th attention has the i-th,
            over again.
        shift_fraction: Part of the channels that a shift takes from either
            side.
        shift_first: Whence the first part comes, 'next' or 'previous' frame.
        with_cp: Recompute each block in the backward pass, to save memory.
        init_std: Standard deviation of the initialisation of the linear
            layers and the position tables.
        init_cfg: ``dict(type='Pretrained', checkpoint=FILE)`` or None.
    """
    # Those that make sense without class tokens.
    shifts = 'none', 'plain', 'periodic'

    def __init__(self, num_frames: int, attention: str, shift: str,
                 pyramid: Sequence[int], shift_fraction: float,
                 shift_first: str, with_cp: bool, init_std: float,
                 init_cfg: dict | None) -> None:
        super().__init__(init_std, init_cfg)
        if shift not in self.shifts:
            raise ValueError(f'shift of {type(self).__name__} must be one of '
                             f'{self.shifts}, got {shift!r}')
        if not pyramid:
            raise ValueError('pyramid must have a level at least, got none')
        self.num_frames = num_frames
        self.attention = attention
        self.shift = shift
        self.pyramid = tuple(pyramid)
        self.shift_fraction = shift_fraction
        self.shift_first = shift_first
        self.with_cp = with_cp
        # Names of position tables, and the grid that each is for.
        self.position_grids: dict[str, tuple[int, int]] = {}

    def mixing(self, index: int) -> FrameMixing:
        """That of the attention number ``index`` of a pyramid."""
        return FrameMixing(self.num_frames, self.attention,
                           self.pyramid[index % len(self.pyramid)],
                           self.shift, self.shift_fraction, self.shift_first)

    def to_frames(self, x: Tensor) -> Tensor:
        """Clips [B, C, T, H, W] to frames [B T, C, H, W].

        Raises:
            ValueError: If the clips have not ``num_frames`` frames.
        """
        if x.shape[2] != self.num_frames:
            raise ValueError(
                f'{type(self).__name__} was built for num_frames='
                f'{self.num_frames}, got clips of {x.shape[2]} frames '
                f'{tuple(x.shape)}; set clip_len in the pipeline or '
                'num_frames in the config')
        return x.transpose(1, 2).flatten(0, 1)

    def to_clips(self, x: Tensor) -> Tensor:
        """Frame features [B T, C, *] to [B, C, T, *]."""
        return x.unflatten(0, (-1, self.num_frames)).transpose(1, 2)

    def run_blocks(self, blocks: nn.ModuleList, x: Tensor) -> Tensor:
        return run_blocks(blocks, x, self.with_cp)

    def add_positions(self, x: Tensor, name: str) -> Tensor:
        """Features [B T, C, H, W] plus the table [1, C, H, W] of a name.

        Raises:
            ValueError: If the grids are not the same.
        """
        self.require_grid(x.shape[2:], name)
        return x + getattr(self, name)

    def require_grid(self, shape: Sequence[int], name: str) -> None:
        grid = self.position_grids[name]
        if tuple(shape) != grid:
            raise ValueError(
                f'the frames give a grid of {tuple(shape)}, but the table '
                f'{name} has {grid}; set img_size (a checkpoint is resized '
                'on load)')

    def get_layer_depth(self, name: str, prefix: str = '') -> tuple[int, int]:
        """Depth of a parameter and number of depths, for layer-wise rates.

        Of a network of several stages.
        """
        name = name.removeprefix(prefix)
        depths = [len(blocks) for child, blocks in self.named_children()
                  if child.startswith('stage')]
        num_depths = sum(depths) + 2
        head, *rest = name.split('.')
        if head.startswith('stage'):
            before = sum(depths[:int(head[-1]) - 1])
            return before + int(rest[0]) + 1, num_depths
        if head.startswith(('patch_embed', 'pos_embed')):
            return sum(depths[:int(head[-1]) - 1]), num_depths
        return (num_depths - 1 if head == 'norm' else 0), num_depths

    def _init_tables(self) -> None:
        for name in (*self.position_grids, 'cls_token'):
            if hasattr(self, name):
                nn.init.trunc_normal_(getattr(self, name), std=self.init_std)

    def _fit_checkpoint(self, state_dict: dict, prefix: str, *args) -> None:
        """Resize the position tables of a checkpoint to this model's grids."""
        for name, grid in self.position_grids.items():
            key = prefix + name
            table, own = state_dict.get(key), getattr(self, name)
            if table is None or table.shape == own.shape or \
                    table.dim() != own.dim():
                continue
            if table.dim() == 4:
                places = table.permute(0, 2, 3, 1).unsqueeze(1)
                state_dict[key] = resize_positions(
                    places, (1, *grid)).squeeze(1).permute(0, 3, 1, 2)
                continue
            # [1, 1 + N, C] with the class token's position first.
            side = int((table.shape[1] - 1)**0.5)
            if table.shape[1] == side**2 + 1:
                places = table[:, None, 1:].unflatten(2, (side, side))
                places = resize_positions(places, (1, *grid)).flatten(1, 3)
                state_dict[key] = torch.cat([table[:, :1], places], dim=1)
