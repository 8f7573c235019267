# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""The surface that every backbone has."""
from collections.abc import Sequence
from typing import Any

import torch.utils.checkpoint as cp
from mmengine.logging import print_log
from mmengine.model import BaseModule
from torch import Tensor, nn

from ..utils.arguments import Count, NotNegative, check_arguments, check_type
from ..utils.checks import check_choice
from ..utils.initialize import initialize
from .positions import fit_positions
from .pretrained import load_matching, read_pretrained


@check_arguments
class BaseBackbone(BaseModule):
    """A network of clips, with a surface that any tool can rely on.

    * ``forward``: clips [B, C, T, H, W] to features; clips of another length
      or frame size are refused in words, see :meth:`check_clips` and
      :meth:`check_grid`.
    * :meth:`encode_frames` and :meth:`forward_encoded`: the two parts of
      ``forward``, before and after the first mixing across time;
      :meth:`frame_groups` says what the first one encodes by itself, which
      windows of a stream may share.
    * ``arch_zoo``: the sizes of the paper by name; see :meth:`choose_arch`.
    * ``with_cp``: recompute each block in the backward pass.
    * :meth:`get_layer_depth`: for learning rates by layer.
    * :meth:`init_weights`: start afresh, then from ``init_cfg``.
    * ``load_state_dict``: fits a checkpoint of another clip length or
      resolution.

    A subclass fills ``position_grids`` with the names of its tables of
    positions and their grids (T, H, W), and defines :meth:`layer_groups` and
    either the two parts of ``forward`` or ``forward`` itself.

    Args:
        num_frames: Frames T of a clip.
        with_cp: Recompute each block in the backward pass, to save memory.
        init_std: Standard deviation of the linear layers' initialization.
        init_cfg: ``dict(type='Pretrained', checkpoint=FILE)`` or None.
    """
    arch_zoo: dict[str, dict[str, Any]] = {}
    # Whether clips of other lengths fit as well.
    any_length = False

    def __init__(self,
                 num_frames: Count,
                 with_cp: bool = False,
                 init_std: NotNegative = 0.02,
                 init_cfg: dict | None = None) -> None:
        super().__init__(init_cfg=init_cfg)
        self.num_frames = num_frames
        self.with_cp = with_cp
        self.init_std = init_std
        self.position_grids: dict[str, tuple[int, int, int]] = {}
        self._register_load_state_dict_pre_hook(self._fit_checkpoint)

    @classmethod
    def choose_arch(cls, arch: str | dict, **numbers: Any) -> dict[str, Any]:
        """Look up the sizes of a network.

        Args:
            arch: A name of ``arch_zoo``, or a dict of the same keys
                (``depths``, mmpretrain's word, may stand for ``num_layers``).
            **numbers: Values that take the place of those of ``arch``, if
                they are not None.

        Raises:
            ValueError: If there is no such name, or a value is missing,
                unknown, or no positive integer (one of each stage).
        """
        if not isinstance(arch, dict):
            check_choice('arch', arch, cls.arch_zoo)
            arch = cls.arch_zoo[arch]
        chosen = {
            'num_layers' if name == 'depths' else name: value
            for name, value in arch.items()
        }
        chosen.update(
            {k: v for k, v in numbers.items() if v is not None})
        example = next(iter(cls.arch_zoo.values()))
        if chosen.keys() != example.keys():
            raise ValueError(f'arch must be a name or have {sorted(example)}, '
                             f'got {sorted(chosen)}')
        for name, value in chosen.items():
            label = name if numbers.get(name) is not None else \
                f'{name} of arch'
            of_stages = not isinstance(example[name], int)
            check_type(label, value, tuple[(Count, ) * len(example[name])]
                       if of_stages else Count)
        return chosen

    def check_clips(self, x: Tensor) -> None:
        """Raise a ``ValueError`` unless x is clips [B, C, T, H, W] that fit.

        Those are clips of ``num_frames`` frames.
        """
        if x.dim() != 5:
            raise ValueError(
                f'{type(self).__name__} takes clips [B, C, T, H, W], got a '
                f'tensor of shape {tuple(x.shape)}')
        self.check_length(x.shape[2], f' {tuple(x.shape)}')

    def check_length(self, num_frames: int, shown: str = '') -> None:
        """Raise a ``ValueError`` unless clips of that length fit."""
        if not self.any_length and num_frames != self.num_frames:
            raise ValueError(
                f'{type(self).__name__} was built for num_frames='
                f'{self.num_frames}, got clips of {num_frames} frames{shown}; '
                'set clip_len in the pipeline or num_frames in the config (a '
                'checkpoint is resized on load)')

    def frame_groups(self, num_frames: int) -> list[tuple[int, ...]] | None:
        """Say which frames of a clip are encoded by themselves.

        A group is encoded without what depends on other frames or on its
        place in the clip, so that it has the same encoding in every clip.

        Args:
            num_frames: Frames T of the clip.

        Returns:
            The frames of each group, by their places in the clip, in order;
            None if there is nothing to encode before frames are mixed.
        """
        return None

    def encode_frames(self, x: Tensor) -> Tensor:
        """Compute what depends on each group of frames alone.

        Args:
            x: Frames of any number of groups, [B, C, T, H, W], normalized.

        Returns:
            [B, T', *], an encoding of each group.
        """
        raise NotImplementedError(
            f'{type(self).__name__} mixes frames from the start')

    def forward_encoded(self, x: Tensor) -> Tensor:
        """Encodings [B, T', *] of all groups of clips to features."""
        raise NotImplementedError(
            f'{type(self).__name__} mixes frames from the start')

    def forward(self, x: Tensor) -> Tensor:
        """Clips [B, C, T, H, W] to features, see :meth:`forward_encoded`.

        Raises:
            ValueError: If the clips have not ``num_frames`` frames, or the
                frames not the size that the tables of positions are for.
        """
        self.check_clips(x)
        return self.forward_encoded(self.encode_frames(x))

    def check_grid(self, shape: Sequence[int], table: str) -> None:
        """Raise a ``ValueError`` unless (H, W) is the grid of that table."""
        grid = self.position_grids[table][1:]
        if tuple(shape) != grid:
            raise ValueError(
                f'the frames give a grid of {tuple(shape)}, but the table '
                f'{table} of {type(self).__name__} has {grid}; set img_size '
                '(a checkpoint is resized on load)')

    def to_frames(self, x: Tensor) -> Tensor:
        """Check clips [B, C, T, H, W] and split them: [B T, C, H, W]."""
        self.check_clips(x)
        return x.transpose(1, 2).flatten(0, 1)

    def to_clips(self, x: Tensor) -> Tensor:
        """Join features of frames: [B T, C, *] to [B, C, T, *]."""
        return x.unflatten(0, (-1, self.num_frames)).transpose(1, 2)

    def layer_groups(self) -> list[list[str]]:
        """Name the parameters of each depth, from the input on.

        Returns:
            For each depth the names of its parameters, or of modules that
            hold them; each parameter is named once. By default those of a
            single row of ``blocks``, what comes before them and ``norm``.
        """
        first = [name for name, _ in self.named_parameters(recurse=False)]
        first += [name for name, _ in self.named_children()
                  if name not in ('blocks', 'norm')]
        return [first, *block_names('blocks', self.blocks), ['norm']]

    def get_layer_depth(self, name: str, prefix: str = '') -> tuple[int, int]:
        """Find the depth of a parameter, for learning rates by layer.

        Args:
            name: Of the parameter.
            prefix: Of the names of this backbone. What does not have it,
                such as the head, has the last depth.

        Returns:
            The depth, from 0, and the number of depths.

        Raises:
            ValueError: If there is no such parameter.
        """
        groups = self.layer_groups()
        if not name.startswith(prefix):
            return len(groups) - 1, len(groups)
        name = name.removeprefix(prefix)
        for depth, group in enumerate(groups):
            if any(f'{name}.'.startswith(f'{part}.') for part in group):
                return depth, len(groups)
        raise ValueError(f'{type(self).__name__} has no parameter {name}')

    def init_weights(self) -> None:
        """Initialize afresh, then from ``init_cfg``."""
        self._init_parameters()
        if self.init_cfg is None:
            return
        state_dict, path = read_pretrained(self)
        self._fit_checkpoint(state_dict, '')
        print_log(load_matching(self, state_dict, path), 'current')

    def _init_parameters(self) -> None:
        """As the released code does, the layers by :func:`initialize`."""
        self._init_tables()
        initialize(self, self.init_std)

    def _init_tables(self) -> None:
        """Initialize the parameters that belong to no layer."""

    def _fit_checkpoint(self, state_dict: dict, prefix: str, *args) -> None:
        """Resize the position tables of a checkpoint to this model's grids.

        Raises:
            ValueError: If the checkpoint has a norm before the blocks and
                this model has none: others it would only be told of.
        """
        for name, module in self.named_modules():
            if name.endswith('pre_norm') and isinstance(
                    module, nn.Identity) and (
                        f'{prefix}{name}.weight' in state_dict):
                raise ValueError(
                    f'the checkpoint has a norm before the blocks, {name}, as '
                    f'CLIP has: build {type(self).__name__} with pre_norm='
                    'True')
        for name, grid in self.position_grids.items():
            key = prefix + name
            if key in state_dict:
                state_dict[key] = fit_positions(
                    state_dict[key], self.get_parameter(name), grid)


def block_names(prefix: str, blocks: nn.ModuleList) -> list[list[str]]:
    """Name each block, a depth of its own; see ``layer_groups``."""
    return [[f'{prefix}.{i}'] for i in range(len(blocks))]


def run_blocks(blocks: nn.ModuleList, x: Tensor, with_cp: bool) -> Tensor:
    """Apply blocks in turn; with ``with_cp`` backward recomputes each."""
    for block in blocks:
        if with_cp and x.requires_grad:
            x = cp.checkpoint(block, x, use_reentrant=False)
        else:
            x = block(x)
    return x
