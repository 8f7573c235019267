# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
import math
from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

import torch
from mmcv.cnn.bricks import DropPath
from torch import Tensor, nn

from ..utils.arguments import check_type
from ..utils.modules import State, named, part_of

A = TypeVar('A')


class VideoTransformerBlock(nn.Module):
    """Pre-norm block: one or two attentions, then the MLP.

    Args:
        attentions: Attentions by name, in the order of use.
        mlp: MLP.
        embed_dims: Channels C.
        drop_path: Probability of dropping a residual branch. Defaults to 0.
        eps: Added to the variance in LayerNorm. Defaults to 1e-6.
        scale_by_keep: Divide a branch that is kept by the probability of
            keeping it. Defaults to True.
    """

    def __init__(self,
                 attentions: dict[str, nn.Module],
                 mlp: nn.Module,
                 embed_dims: int,
                 drop_path: float = 0.,
                 eps: float = 1e-6,
                 scale_by_keep: bool = True) -> None:
        super().__init__()
        self.branches = (*attentions, 'mlp')
        for name, branch in {**attentions, 'mlp': mlp}.items():
            self.add_module(f'{name}_norm', nn.LayerNorm(embed_dims, eps=eps))
            self.add_module(name, branch)
        self.drop_path = (DropPath
                          if scale_by_keep else StochasticDepth)(drop_path)

    def forward(self, x: Tensor) -> Tensor:
        """Apply the block to tokens [B, T, H, W, C]."""
        for name in self.branches:
            branch = getattr(self, name)
            norm = getattr(self, f'{name}_norm')
            x = x + self.drop_path(branch(norm(x)))
        return x

    def forward_causal(self, x: Tensor, state: State,
                       elapsed: Tensor | None = None) -> tuple[Tensor, State]:
        """Apply the block to the next frames of streams, [B, T, H, W, C].

        The arguments are those of :meth:`VideoSelfAttention.forward_causal`.
        """
        new = {}
        for name in self.branches:
            y = getattr(self, f'{name}_norm')(x)
            if name == 'mlp':
                y = self.mlp(y)
            else:
                y, part = getattr(self, name).forward_causal(
                    y, part_of(state, name), elapsed)
                new |= named(name, part)
            x = x + self.drop_path(y)
        return x, new

    def initial_state(self, x: Tensor) -> State:
        """Return the state for tokens [B, T, H, W, C] of any T."""
        state = {}
        for name in self.branches[:-1]:
            state |= named(name, getattr(self, name).initial_state(x))
        return state

    def decay_state(self, state: State, elapsed: Tensor) -> State:
        """Return the state after ``elapsed`` nominal intervals, [B]."""
        new = {}
        for name in self.branches[:-1]:
            new |= named(name, getattr(self, name).decay_state(
                part_of(state, name), elapsed))
        return new


def stochastic_depth_rates(last: float, num_blocks: int) -> list[float]:
    """Return drop rates of blocks that rise linearly from 0 to ``last``.

    Raises:
        ValueError: If ``last`` is not in [0, 1).
    """
    if not 0 <= last < 1:
        raise ValueError('drop_path_rate must be at least 0 and below 1, got '
                         f'{last}')
    return [last * i / max(num_blocks - 1, 1) for i in range(num_blocks)]


def rescale_blocks(blocks: nn.ModuleList) -> None:
    """Divide the last layers of a block's branches by sqrt(2 * its number).

    V-JEPA 2 does this at initialization.
    """
    with torch.no_grad():
        for number, block in enumerate(blocks, 1):
            for layer in block.attn.proj, block.mlp.fc2:
                layer.weight /= math.sqrt(2 * number)


def attention_of_layers(attention: A | Sequence[A] | Mapping[str, Any],
                        num_layers: int, kind: Any = dict) -> list[A]:
    """Return the attention of each layer, from input to output.

    Args:
        attention: The attention of all layers; or a list with an entry for
            each layer; or ``dict(layers={5: ATTENTION}, rest=ATTENTION)``,
            where the first layer has the number 0.
        num_layers: Number of layers.
        kind: Annotation of an attention, see
            :func:`mmvidattn.utils.arguments.check_type`. Defaults to dict.

    Raises:
        ValueError: If a list has another length, a layer does not exist, or
            an entry does not match ``kind``.
    """
    if isinstance(attention, Mapping) and 'layers' in attention:
        # The keys are text in JSON and in --cfg-options.
        layers = {str(i): x for i, x in attention['layers'].items()}
        if {*attention} != {'layers', 'rest'} or not {*layers} <= {
                str(i) for i in range(num_layers)}:
            raise ValueError(
                'attention by layer must be dict(layers={NUMBER: ATTENTION}, '
                f'rest=ATTENTION) with numbers from 0 to {num_layers - 1}, '
                f'got {dict(attention)}')
        chosen = [layers.get(str(i), attention['rest'])
                  for i in range(num_layers)]
    elif isinstance(attention, (list, tuple)):
        chosen = list(attention)
        if len(chosen) != num_layers:
            raise ValueError(
                f'a list of attentions must have an entry for each of the '
                f'{num_layers} layers, got {len(chosen)}')
    else:
        chosen = [attention] * num_layers
    for i, entry in enumerate(chosen):
        check_type(f'attention of layer {i}', entry, kind)
    return chosen


class StochasticDepth(DropPath):
    """``DropPath`` without rescaling of kept branches.

    ``DropPath`` divides a kept branch by the probability of keeping it, so
    that the mean in training equals the output in testing. This module does
    not, like the released code of ViViT.
    """

    def forward(self, x: Tensor) -> Tensor:
        y = super().forward(x)
        return y * (1 - self.drop_prob) if self.training else y
