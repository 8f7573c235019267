# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Count the operations of a forward pass, of any module or of a config."""
import copy
import math
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import torch
from mmaction.registry import MODELS
from mmengine.config import Config
from mmengine.registry import init_default_scope
from torch import Tensor, nn
from torch.utils.flop_counter import flop_registry

from ..backbones import DualFormer, LinearVideoTransformer, XViT
from ..layers import (
    BaseAttention,
    CosFormerAttention,
    FeatureFixation,
    LinearAttention,
    LinformerAttention,
    PerformerAttention,
    SoftmaxAttention,
)
from ..online import OnlineVideoEncoder
from ..ops.torch_private import TorchDispatchMode
from ..recognizers import OnlineActionDetector
from ..utils.checks import to_pair
from .bundle_types.registry import types_of

aten = torch.ops.aten


def _attention_macs(q: Tensor, k: Tensor, v: Tensor, *args, **kwargs) -> int:
    """[B, G, N, D], [B, G, M, D], [B, G, M, E]."""
    return q.shape[:-1].numel() * k.shape[-2] * (q.shape[-1] + v.shape[-1])


def _per_output(cost: int) -> Callable[..., int]:
    return lambda out, *args, **kwargs: cost * out.numel()


def _per_input(cost: int) -> Callable[..., int]:
    return lambda out, x, *args, **kwargs: cost * x.numel()


def _pool_cost(out: Tensor, x: Tensor, kernel_size, *args, **kwargs) -> int:
    return out.numel() * math.prod(kernel_size)


def _sort_cost(out: Tensor, x: Tensor, dim: int = -1, *args,
               **kwargs) -> int:
    return x.numel() * math.ceil(math.log2(max(x.shape[dim], 1)))


# Multiply-accumulates of operators without a formula in torch.
_MACS = {aten._scaled_dot_product_flash_attention_for_cpu: _attention_macs}
# Formulas for operators that are not pointwise. They compute the number of
# operations from the (first) result and the inputs.
_ELEMENTWISE = {
    # Count 5 per value: for a norm like fvcore, and for softmax as maximum,
    # difference, exponential, sum and division.
    **dict.fromkeys((aten.native_layer_norm, aten.native_group_norm,
                     aten.native_batch_norm, aten._softmax,
                     aten._log_softmax), _per_output(5)),
    aten.logsumexp: _per_input(4),
    # A product and a sum.
    aten.linalg_vector_norm: _per_input(2),
    # Difference, product and sum.
    aten.var: _per_input(3),
    # One sum, product or comparison per element; finding the k largest takes
    # at least as many operations.
    **dict.fromkeys((aten.sum, aten.mean, aten.amax, aten.amin, aten.max,
                     aten.min, aten.argmax, aten.argmin, aten.any, aten.all,
                     aten.cumsum, aten.prod, aten.topk,
                     aten._adaptive_avg_pool2d, aten._adaptive_avg_pool3d),
                    _per_input(1)),
    aten.sort: _sort_cost,
    **dict.fromkeys((aten.avg_pool2d, aten.avg_pool3d,
                     aten.max_pool2d_with_indices), _pool_cost),
    # A product and a sum for each neighbor.
    aten.upsample_linear1d: _per_output(4),
    aten.upsample_bilinear2d: _per_output(8),
    aten.upsample_bicubic2d: _per_output(32),
    aten.floor_divide: _per_output(1),
}
# Softmax of masked attention in torch 2.5 and later.
if hasattr(aten, '_safe_softmax'):
    _ELEMENTWISE[aten._safe_softmax] = _ELEMENTWISE[aten._softmax]
# Operators that only move, create or look up numbers.
_FREE = {
    aten.clone, aten._to_copy, aten.copy_, aten.cat, aten.stack, aten.empty,
    aten.empty_like, aten.empty_strided, aten.zeros, aten.zeros_like,
    aten.ones, aten.ones_like, aten.new_ones, aten.new_zeros, aten.new_empty,
    aten.full, aten.full_like, aten.arange, aten.triu, aten.fill_, aten.zero_,
    aten.constant_pad_nd, aten.index, aten.index_select, aten.gather,
    aten.unsafe_split, aten.transpose_,
    aten.roll, aten.flip, aten.scalar_tensor, aten.eye, aten._unsafe_view,
    aten.repeat, aten.detach, aten.lift_fresh, aten.embedding,
    aten.native_dropout, aten.scatter, aten.scatter_,
    aten.as_strided_
}


@dataclass
class Complexity:
    """Cost of one forward pass.

    Attributes:
        params: Number of parameters.
        macs: Multiply-accumulates of matrix products and convolutions, which
            papers call "FLOPs".
        elementwise: All other operations: sums, activations, norms.
        uncounted: Number of calls of each operator without a formula.
    """
    params: int = 0
    macs: int = 0
    elementwise: int = 0
    uncounted: Counter = field(default_factory=Counter)

    @property
    def flops(self) -> int:
        """Floating-point operations: two per multiply-accumulate."""
        return 2 * self.macs + self.elementwise


class _Count(TorchDispatchMode):

    def __init__(self) -> None:
        super().__init__()
        self.result = Complexity()

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        out = func(*args, **kwargs)
        op = func.overloadpacket
        first = out[0] if isinstance(out, (tuple, list)) and out else out
        numel = first.numel() if isinstance(first, Tensor) else 0
        if op in _MACS:
            self.result.macs += _MACS[op](*args, **kwargs)
        elif op in flop_registry:
            self.result.macs += flop_registry[op](
                *args, **kwargs, out_val=out) // 2
        elif func.is_view or op in _FREE or not numel:
            pass
        elif op in _ELEMENTWISE:
            self.result.elementwise += _ELEMENTWISE[op](first, *args, **kwargs)
        elif torch.Tag.pointwise in func.tags:
            self.result.elementwise += numel
        else:
            self.result.uncounted[str(op)] += 1
        return out


def count_complexity(model: nn.Module, *inputs: Tensor,
                     **kwargs) -> Complexity:
    """Count the parameters and operations of ``model(*inputs, **kwargs)``.

    Fused attention counts as two matrix products. On the meta device, nothing
    is computed and no memory is needed.

    Args:
        model: Any module; it is put into eval mode.
        *inputs: Inputs of the model, on its device.
        **kwargs: Keyword arguments of the model.
    """
    with torch.no_grad(), _Count() as count:
        model.eval()(*inputs, **kwargs)
    count.result.params = sum(p.numel() for p in model.parameters())
    return count.result


CROPS = dict(CenterCrop=1, ThreeCrop=3, UniformThreeCrop=3, TenCrop=10)


def _kernel_macs(q: Tensor, k: Tensor, v: Tensor, features: int) -> int:
    """Count K^T V and Q (K^T V), for a number of features per head."""
    tokens = q.shape[:-1].numel() + k.shape[:-1].numel()
    return tokens * features * v.shape[-1]


# Multiply-accumulates of each attention in the released code, from the module,
# q [*, N, G, F], k [*, M, G, F] and v [*, M, G, D].
RELEASED_MACS = {
    CosFormerAttention: lambda attention, q, k, v: _kernel_macs(
        q, k, v, 2 * q.shape[-1]),
    LinearAttention: lambda attention, q, k, v: _kernel_macs(
        q, k, v, q.shape[-1]),
    # The projections of K and V, the scores and the weighted sum.
    LinformerAttention: lambda attention, q, k, v: (
        2 * (q.numel() + k.numel()) * attention.key_projection.shape[1]),
    # The projection to features, and the products of the features.
    PerformerAttention: lambda attention, q, k, v: (
        (q.numel() + k.numel()) * attention.head_dims
        + _kernel_macs(q, k, v, q.shape[-1])),
    SoftmaxAttention: lambda attention, q, k, v: 2 * q.numel() * k.shape[-3],
}


def view_of(pipeline: list[dict]) -> tuple[tuple[int, int, int], int]:
    """Return the shape (T, H, W) and the number of views of a pipeline."""
    frames, side, views = None, None, 1
    for step in pipeline:
        if 'clip_len' in step:
            frames = step['clip_len']
            views *= step.get('num_clips', 1)
        if step['type'] in CROPS:
            side = step['crop_size']
            views *= CROPS[step['type']]
        elif step['type'] == 'RandomCrop':
            side = step['size']
        elif step['type'] == 'Resize' and not step.get('keep_ratio', True):
            side = step['scale']
    if frames is None or side is None:
        raise ValueError('the pipeline lacks clip_len or crop_size: use '
                         '--shape T H W')
    height, width = (side, side) if isinstance(side, int) else side[::-1]
    return (frames, height, width), views


def shape_of(cfg: Config) -> tuple[tuple[int, ...], int]:
    """Return the shape of a view and the number of views of a config.

    For an online detector, the shape is (window length, ) of features, or
    (1, H, W) of a frame.
    """
    if cfg.model.type == 'OnlineActionDetector':
        backbone = cfg.model.backbone
        if backbone.type == 'OnlineVideoEncoder':
            return (1, *to_pair(backbone.encoder.get('img_size', 224))), 1
        # Networks without a long memory define the length in their class.
        long = backbone.get('long_memory_length')
        if long is None:
            long = MODELS.get(backbone.type).long_memory_length
        return (long + backbone.work_memory_length, ), 1
    return view_of(cfg.test_pipeline)


def inputs_of(model: nn.Module,
              shape: Sequence[int]) -> Tensor | dict[str, Tensor]:
    """Return an uninitialized view for a model."""
    if isinstance(model.backbone, OnlineVideoEncoder):
        return dict(frames=torch.empty(1, 3, *shape))
    if isinstance(model, OnlineActionDetector):
        return {
            name: torch.empty(1, *shape, channels)
            for name, channels in model.backbone.in_channels.items()
        }
    return torch.empty(1, 1, 3, *shape)


def count_with_norms(model: nn.Module, clips: Tensor) -> Complexity:
    """Count like fvcore, which the authors of DualFormer used.

    In addition to multiply-accumulates, LayerNorm counts five operations per
    element, and BatchNorm two.
    """
    costs = {nn.LayerNorm: 5, nn.BatchNorm3d: 2}
    norms = []
    handles = [
        m.register_forward_hook(lambda m, args, out: norms.append(
            costs[type(m)] * out.numel())) for m in model.modules()
        if type(m) in costs
    ]
    result = count_complexity(model, clips, mode='tensor', stage='head')
    for handle in handles:
        handle.remove()
    return Complexity(result.params, result.macs + sum(norms))


def count_as_released(model: nn.Module, clips: Tensor) -> Complexity | None:
    """Count multiply-accumulates and parameters like the released code.

    Linear attention computes K^T V first, the gate is evaluated for Q and for
    K, and LayerNorm counts five operations per element. Sums, denominators and
    other elementwise operations are not counted. The parameters include the
    layer ``new_fc``, which the released model does not use, and always 8
    temporal embeddings.

    Returns:
        The counts; None for a backbone or an attention whose released count
        is unknown.
    """
    if isinstance(model.backbone, DualFormer):
        return count_with_norms(model, clips)
    kinds = {type(m) for m in model.modules() if isinstance(m, BaseAttention)}
    if not isinstance(model.backbone, (LinearVideoTransformer, XViT)) \
            or not kinds <= set(RELEASED_MACS) or model.backbone.is_causal:
        return None
    result = Complexity(params=sum(p.numel() for p in model.parameters()))
    head, table = model.cls_head, model.backbone.temporal_embed
    result.params += (head.in_channels + 1) * head.num_classes
    result.params += (8 - table.shape[1]) * table.shape[-1]

    def count(module: nn.Module, inputs: tuple, out) -> None:
        if isinstance(module, nn.Linear):
            result.macs += out.numel() * module.in_features
        elif isinstance(module, (nn.Conv2d, nn.Conv3d)):
            result.macs += out.numel() * module.weight[0].numel()
        elif isinstance(module, nn.LayerNorm):
            result.macs += 5 * out.numel()
        elif isinstance(module, FeatureFixation):
            # Two ratios are evaluated for each channel, from all inputs.
            gate = next(module.children())
            result.macs += inputs[0].numel() * 2 * gate.in_features
        elif isinstance(module, BaseAttention):
            result.macs += RELEASED_MACS[type(module)](module, *inputs[:3])

    handles = [m.register_forward_hook(count) for m in model.modules()]
    with torch.no_grad():
        model.eval()(clips, mode='tensor', stage='head')
    for handle in handles:
        handle.remove()
    return result


def count_config(
        cfg: Config, shape: Sequence[int]
) -> tuple[Complexity, Complexity | None]:
    """Count a config's model on a view: in full, and like the released code.
    """
    init_default_scope('mmaction')
    model_cfg = copy.deepcopy(cfg.model)
    # Remove mixup, which cannot be built without data.
    model_cfg.data_preprocessor = dict(type='ActionDataPreprocessor')
    with torch.device('meta'), types_of(cfg):
        model = MODELS.build(model_cfg)
        clips = inputs_of(model, shape)
    ours = count_complexity(model, clips, mode='tensor', stage='head')
    return ours, count_as_released(model, clips)
