# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Count the products of a forward pass, of any module or of a config."""
import copy
from collections.abc import Sequence
from typing import NamedTuple

import torch
from mmaction.registry import MODELS
from mmengine.config import Config
from mmengine.registry import init_default_scope
from torch import Tensor, nn
from torch.utils.flop_counter import flop_registry, sdpa_flop_count

from ..online import OnlineVideoEncoder
from ..ops.torch_private import TorchDispatchMode
from ..recognizers import OnlineActionDetector
from .bundle_types.registry import types_of


class Complexity(NamedTuple):
    """Cost of one forward pass."""
    params: int
    # Multiply-accumulates of matrix products and convolutions, which papers
    # call "FLOPs".
    macs: int


# torch has no formula for this operator, which runs on a CPU.
FORMULAS = {
    **flop_registry,
    torch.ops.aten._scaled_dot_product_flash_attention_for_cpu:
    lambda q, k, v, *_, **__: sdpa_flop_count(q.shape, k.shape, v.shape)}


class _Count(TorchDispatchMode):
    flops = 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        out = func(*args, **(kwargs or {}))
        if func.overloadpacket in FORMULAS:
            self.flops += FORMULAS[func.overloadpacket](
                *args, **(kwargs or {}), out_val=out)
        return out


def count_complexity(model: nn.Module, *inputs: Tensor,
                     **kwargs) -> Complexity:
    """Count the parameters and products of ``model(*inputs, **kwargs)``.

    The model is put into eval mode. Fused attention counts as two matrix
    products. On the meta device, nothing is computed and no memory is needed.
    """
    with torch.no_grad(), _Count() as count:
        model.eval()(*inputs, **kwargs)
    return Complexity(
        sum(p.numel() for p in model.parameters()), count.flops // 2)


def build_on_meta(cfg: Config, shape: Sequence[int]
                  ) -> tuple[nn.Module, Tensor | dict[str, Tensor]]:
    """Build a config's model and a view without values."""
    init_default_scope('mmaction')
    model_cfg = copy.deepcopy(cfg.model)
    # Remove mixup, which cannot be built without data.
    model_cfg.data_preprocessor = dict(type='ActionDataPreprocessor')
    with torch.device('meta'), types_of(cfg):
        model = MODELS.build(model_cfg)
        if isinstance(model.backbone, OnlineVideoEncoder):
            return model, dict(frames=torch.empty(1, 3, *shape))
        if isinstance(model, OnlineActionDetector):
            return model, {
                name: torch.empty(1, *shape, channels)
                for name, channels in model.backbone.in_channels.items()}
        return model, torch.empty(1, 1, 3, *shape)


def count_config(cfg: Config, shape: Sequence[int]) -> Complexity:
    """Count a config's model on a view."""
    return count_complexity(*build_on_meta(cfg, shape), mode='tensor',
                            stage='head')
