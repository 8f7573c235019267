# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Linear video transformer, compared with softmax and the paper's equations.

* ours: ``LinearVideoTransformer``, as in ``configs/linear_ff_ssv2.py``;
* softmax: the same model with explicit softmax attention (``Q K^T``) instead
  of linear attention;
* softmax, no fixation: the same without the gate, which softmax does not need;
* transcription: the paper's equations, written literally.
"""
import argparse

from torch import Tensor, nn

from mmvidattn.backbones import LinearVideoTransformer
from mmvidattn.layers import BaseAttention
from mmvidattn.ops.softmax_attention import naive_softmax_attention
from tools.benchmark.measure import ModelCase
from tools.benchmark.references.linear_ff import (
    TranscribedLinearVideoTransformer,
    copy_weights,
)


class ExplicitSoftmax(BaseAttention):
    """Attention that computes the matrix of scores."""

    def forward(self, q: Tensor, k: Tensor, v: Tensor, *shapes) -> Tensor:
        return naive_softmax_attention(q, k, v)


def size_of(args: argparse.Namespace) -> dict[str, int]:
    return dict(num_frames=args.shape[0], num_layers=args.layers)


def with_explicit_softmax(args: argparse.Namespace, **kwargs) -> nn.Module:
    model = LinearVideoTransformer(**size_of(args), **kwargs)
    for block in model.blocks:
        for module in (block.temporal_attn, block.spatial_attn):
            linear = module.attention
            module.attention = ExplicitSoftmax(
                linear.head_dims, linear.num_heads, linear.seq_shape)
    return model


def share_weights(models: dict[str, nn.Module]) -> None:
    copy_weights(models['ours'], models['transcription'])


CASE = ModelCase({
    'ours': lambda args: LinearVideoTransformer(**size_of(args)),
    'softmax': with_explicit_softmax,
    'softmax, no fixation':
    lambda args: with_explicit_softmax(args, fixation=None),
    'transcription':
    lambda args: TranscribedLinearVideoTransformer(**size_of(args)),
}, share_weights, options=('layers', ))
run, report, IN_PROCESS = CASE.run, CASE.report, dict(peak=CASE.peak)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    CASE.add_arguments(parser, (16, 224, 224))
    parser.add_argument('--layers', type=int, default=12)
