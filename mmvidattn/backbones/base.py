# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Base class of all backbones."""
from collections.abc import Sequence
from typing import Any, Literal

import torch.utils.checkpoint as cp
from mmengine.model import BaseModule
from torch import Tensor, nn

from ..utils.arguments import Count, NotNegative, check_arguments, check_type
from ..utils.modules import State, initialize, named, part_of
from .positions import fit_positions
from .pretrained import load_matching, read_pretrained


@check_arguments
class BaseBackbone(BaseModule):
    """Base class of the networks for clips.

    * ``forward``: compute features of clips [B, C, T, H, W].
    * :meth:`encode_frames` and :meth:`forward_encoded`: the parts of
      ``forward`` before and after the first layer that mixes frames.
      :meth:`frame_groups` returns the groups of frames that ``encode_frames``
      encodes independently. Overlapping windows of a stream share these
      encodings.
    * :meth:`forward_causal`, :meth:`initial_state` and :meth:`decay_state`:
      run a network with ``is_causal`` as a stream, frame by frame.
    * ``arch_zoo``: named sizes from the paper, see :meth:`choose_arch`.
    * ``load_state_dict``: adapt checkpoints of a different clip length or
      resolution.

    A subclass adds the grids (T, H, W) of its position tables to
    ``position_grids``. It defines :meth:`layer_groups`, and either ``forward``
    or both :meth:`encode_frames` and :meth:`forward_encoded`. If it can be
    causal, it also defines ``_forward_causal`` and ``_initial_state``, which
    have the arguments of the methods without the underscore.

    Many networks share these options:

    * ``in_channels``: channels of a frame.
    * ``embed_dims``, ``num_layers``, ``num_heads``: values that override
      ``arch``.
    * ``mlp_ratio``: hidden channels of the MLP, as a multiple of its channels.
    * ``qkv_bias``: add biases to the projections to Q, K and V.
    * ``drop_rate``: dropout after the projections and in the MLP.
    * ``drop_path_rate``: stochastic depth of the last block; it rises linearly
      from 0.

    Args:
        num_frames: Clip length T.
        with_cp: Recompute each block in the backward pass, to save memory.
            Defaults to False.
        init_std: Standard deviation of the initial weights of linear layers.
            0.02 suits about 500 channels; narrow models learn faster with
            ``embed_dims ** -0.5``. Defaults to 0.02.
        init_cfg: Start weights. ``dict(type='Pretrained', checkpoint=FILE)``
            loads the tensors of FILE that match in name and shape, and logs
            all mismatches. ``source``, a key of
            ``mmvidattn.convert.SOURCES``, converts a published file first.
            Defaults to None: random weights.
    """
    arch_zoo: dict[str, dict[str, Any]] = {}
    # True if the network also accepts clips of other lengths.
    any_length = False
    # True if the network has :meth:`forward_causal`.
    is_causal = False

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
            arch: A name from ``arch_zoo``, or a dict with the same keys.
                ``depths``, the name in mmpretrain, may replace
                ``num_layers``.
            **numbers: Values that override ``arch`` unless they are None.

        Raises:
            ValueError: If the name is unknown, or a value is missing,
                unknown, or not a positive integer (one for each stage).
        """
        if not isinstance(arch, dict):
            check_type('arch', arch, Literal[tuple(cls.arch_zoo)])
            arch = cls.arch_zoo[arch]
        chosen = {
            'num_layers' if name == 'depths' else name: value
            for name, value in arch.items()
        }
        chosen.update({k: v for k, v in numbers.items() if v is not None})
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
        """Raise a ``ValueError`` unless x is [B, C, T, H, W] of a valid T."""
        if x.dim() != 5:
            raise ValueError(
                f'{type(self).__name__} takes clips [B, C, T, H, W], got a '
                f'tensor of shape {tuple(x.shape)}')
        self.check_length(x.shape[2], f' {tuple(x.shape)}')

    def check_length(self, num_frames: int, shown: str = '') -> None:
        """Raise a ``ValueError`` unless the network accepts this length."""
        if not self.any_length and num_frames != self.num_frames:
            raise ValueError(
                f'{type(self).__name__} was built for num_frames='
                f'{self.num_frames}, got clips of {num_frames} frames{shown}; '
                'set clip_len in the pipeline or num_frames in the config (a '
                'checkpoint is resized on load)')

    def frame_groups(self, num_frames: int) -> list[tuple[int, ...]] | None:
        """Return the groups of frames that are encoded independently.

        The encoding of a group depends neither on other frames nor on its
        position in the clip, so it is the same in every clip.

        Args:
            num_frames: Clip length T.

        Returns:
            Frame indices of each group, in order; None if frames are mixed
            from the start. Defaults to one group per frame for networks with
            :meth:`encode_frames`.
        """
        if type(self).encode_frames is BaseBackbone.encode_frames:
            return None
        self.check_length(num_frames)
        return [(i, ) for i in range(num_frames)]

    def encode_frames(self, x: Tensor) -> Tensor:
        """Encode each group of frames independently.

        Args:
            x: Normalized frames of any number of groups, [B, C, T, H, W].

        Returns:
            [B, T', *], one encoding for each group.
        """
        raise NotImplementedError(
            f'{type(self).__name__} mixes frames from the start')

    def forward_encoded(self, x: Tensor) -> Tensor:
        """Compute features from the encodings [B, T', *] of clips."""
        raise NotImplementedError(
            f'{type(self).__name__} mixes frames from the start')

    def forward(self, x: Tensor) -> Tensor:
        """Compute features of clips [B, C, T, H, W].

        Raises:
            ValueError: If the clip length is not ``num_frames``, or the frame
                size does not fit the position tables.
        """
        self.check_clips(x)
        return self.forward_encoded(self.encode_frames(x))

    def forward_causal(self, x: Tensor, state: State | None = None,
                       elapsed: Tensor | None = None) -> tuple[Tensor, State]:
        """Compute features of the next frames of streams.

        The features of a frame depend on this frame and the frames before
        it. A call for each part of a stream gives the results of one call for
        the whole stream, because the state contains its entire history.

        Args:
            x: T >= 1 frames of each stream, [B, C, T, H, W].
            state: State of :meth:`initial_state` or of the previous call; it
                is not changed. Defaults to the start of the streams.
            elapsed: Time since the previous frame in nominal intervals
                between frames, [B, T]. Defaults to 1.

        Returns:
            Features of each frame, [B, D, T, *], and the new state: tensors
            of the same names and shapes.
        """
        self._check_causal()
        self.check_clips(x)
        if state is None:
            state = self.initial_state(len(x), x.shape[-2:])
        return self._forward_causal(x, state, elapsed)

    def initial_state(self, batch_size: int = 1,
                      frame_shape: tuple[int, int] | None = None) -> State:
        """Return the state of streams before their first frame.

        Args:
            batch_size: Number of streams B.
            frame_shape: Height and width of the frames. Defaults to
                ``img_size``.

        Returns:
            Tensors by name, [B, *] each.
        """
        self._check_causal()
        return self._initial_state(batch_size, frame_shape)

    def decay_state(self, state: State, elapsed: Tensor) -> State:
        """Return the state after dropped frames, which only decay it.

        Args:
            state: State before; it is not changed.
            elapsed: Duration of the dropped frames in nominal intervals,
                [B].
        """
        self._check_causal()
        new = dict(state)
        for name, block in self._named_causal_blocks():
            new |= named(name, block.decay_state(part_of(state, name),
                                                 elapsed))
        return new

    @property
    def causal_blocks(self) -> nn.ModuleList:
        """Blocks that have a state, if the network is causal."""
        return self.blocks

    def _named_causal_blocks(self) -> list[tuple[str, nn.Module]]:
        return [(f'blocks.{i}', block)
                for i, block in enumerate(self.causal_blocks)]

    def initial_block_states(self, x: Tensor) -> State:
        """Return the state of the blocks for tokens [B, T, H, W, D], any T."""
        state = {}
        for name, block in self._named_causal_blocks():
            state |= named(name, block.initial_state(x))
        return state

    def run_causal_blocks(self, x: Tensor, state: State | None = None,
                          elapsed: Tensor | None = None
                          ) -> tuple[Tensor, State]:
        """Apply the causal blocks to the next tokens, [B, T, H, W, D].

        The arguments are those of :meth:`forward_causal`. ``state`` may have
        further tensors, but the new state has only those of the blocks.
        """
        if state is None:
            state = self.initial_block_states(x)
        new = {}
        for name, block in self._named_causal_blocks():
            part = part_of(state, name)
            if self.with_cp and x.requires_grad:
                x, part = cp.checkpoint(block.forward_causal, x, part, elapsed,
                                        use_reentrant=False)
            else:
                x, part = block.forward_causal(x, part, elapsed)
            new |= named(name, part)
        return x, new

    def _check_causal(self) -> None:
        if not self.is_causal:
            raise NotImplementedError(
                f'{type(self).__name__} with these options is not causal')

    def check_grid(self, shape: Sequence[int], table: str) -> None:
        """Raise a ``ValueError`` unless (H, W) is the grid of a table."""
        grid = self.position_grids[table][1:]
        if tuple(shape) != grid:
            raise ValueError(
                f'{table} of {type(self).__name__} expects a grid of {grid}, '
                f'got {tuple(shape)}; set img_size to the size of the frames '
                '(a checkpoint is resized on load)')

    def to_frames(self, x: Tensor) -> Tensor:
        """Check clips [B, C, T, H, W] and reshape them to [B T, C, H, W]."""
        self.check_clips(x)
        return x.transpose(1, 2).flatten(0, 1)

    def to_clips(self, x: Tensor) -> Tensor:
        """Reshape features of frames [B T, C, *] to [B, C, T, *]."""
        return x.unflatten(0, (-1, self.num_frames)).transpose(1, 2)

    def layer_groups(self) -> list[list[str]]:
        """List the parameters of each depth, from input to output.

        The default is for networks whose children are lists of blocks, a
        last ``norm``, and modules that belong to the block before them.

        Returns:
            Names of parameters or modules for each depth. Each parameter
            belongs to exactly one depth.
        """
        groups = [[name for name, _ in self.named_parameters(recurse=False)]]
        for name, child in self.named_children():
            if isinstance(child, nn.ModuleList):
                groups += block_names(name, child)
            elif name == 'norm':
                groups.append([name])
            else:
                groups[-1].append(name)
        return groups

    def get_layer_depth(self, name: str, prefix: str = '') -> tuple[int, int]:
        """Return the depth of a parameter, for layer-wise learning rates.

        Args:
            name: Name of the parameter.
            prefix: Prefix of this backbone's parameters. Parameters without
                this prefix, such as parameters of the head, have the last
                depth.

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
        """Initialize all parameters, then load ``init_cfg``."""
        self._init_parameters()
        if self.init_cfg is None:
            return
        state_dict, path = read_pretrained(self)
        self._fit_checkpoint(state_dict, '')
        load_matching(self, state_dict, path)

    def _init_parameters(self) -> None:
        """Initialize tables, then the layers by :func:`initialize`."""
        self._init_tables()
        initialize(self, self.init_std)

    def _init_tables(self) -> None:
        """Initialize the parameters that belong to no layer."""

    def _fit_checkpoint(self, state_dict: dict, prefix: str, *args) -> None:
        """Resize the position tables of a checkpoint to this model's grids.

        Raises:
            ValueError: If the checkpoint has a norm before the blocks and this
                model does not. (With ``strict=False``, this would only be
                logged.)
        """
        for name, module in self.named_modules():
            if name.endswith('pre_norm') and isinstance(
                    module, nn.Identity) and (
                        f'{prefix}{name}.weight' in state_dict):
                raise ValueError(
                    f'the checkpoint has a norm before the blocks, {name}, '
                    f'like CLIP; build {type(self).__name__} with pre_norm='
                    'True')
        for name, grid in self.position_grids.items():
            key = prefix + name
            if key in state_dict:
                state_dict[key] = fit_positions(
                    state_dict[key], self.get_parameter(name), grid)


def block_names(prefix: str, blocks: nn.ModuleList) -> list[list[str]]:
    """Return one group for each block, for ``layer_groups``."""
    return [[f'{prefix}.{i}'] for i in range(len(blocks))]


def run_blocks(blocks: nn.ModuleList, x: Tensor, with_cp: bool) -> Tensor:
    """Apply blocks in order; ``with_cp`` recomputes them in backward."""
    for block in blocks:
        if with_cp and x.requires_grad:
            x = cp.checkpoint(block, x, use_reentrant=False)
        else:
            x = block(x)
    return x
