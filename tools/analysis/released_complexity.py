# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Count multiply-accumulates and parameters like the authors' programs."""
from collections.abc import Sequence

from mmengine.config import Config
from torch import Tensor, nn

from mmvidattn.apis.complexity import (
    Complexity,
    build_on_meta,
    count_complexity,
)
from mmvidattn.backbones import DualFormer, LinearVideoTransformer, XViT
from mmvidattn.layers import (
    BaseAttention,
    CosFormerAttention,
    FeatureFixation,
    LinearAttention,
    LinformerAttention,
    PerformerAttention,
    SoftmaxAttention,
)


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


def count_as_released(model: nn.Module, clips: Tensor) -> Complexity | None:
    """Count multiply-accumulates and parameters like the released code.

    DualFormer's authors used fvcore, which adds five operations per element
    of a LayerNorm and two of a BatchNorm to the products. In the linear video
    transformer and XViT, linear attention computes K^T V first, the gate is
    evaluated for Q and for K, and denominators are not counted. Their
    parameters include the layer ``new_fc``, which the released model does not
    use, and always 8 temporal embeddings.

    Returns:
        The counts; None for a backbone or an attention whose released count
        is unknown.
    """
    norms, macs = [], []

    def count_norm(module: nn.Module, inputs: tuple, out: Tensor) -> None:
        norms.append((5 if isinstance(module, nn.LayerNorm) else 2)
                     * out.numel())

    def count(module: nn.Module, inputs: tuple, out: Tensor) -> None:
        if isinstance(module, nn.Linear):
            macs.append(out.numel() * module.in_features)
        elif isinstance(module, (nn.Conv2d, nn.Conv3d)):
            macs.append(out.numel() * module.weight[0].numel())
        elif isinstance(module, FeatureFixation):
            # Two ratios are evaluated for each channel, from all inputs.
            gate = next(module.children())
            macs.append(inputs[0].numel() * 2 * gate.in_features)
        elif isinstance(module, BaseAttention):
            macs.append(RELEASED_MACS[type(module)](module, *inputs[:3]))

    attentions = {type(m) for m in model.modules()
                  if isinstance(m, BaseAttention)}
    is_dualformer = isinstance(model.backbone, DualFormer)
    if not is_dualformer and (
            not isinstance(model.backbone, (LinearVideoTransformer, XViT))
            or not attentions <= {*RELEASED_MACS} or model.backbone.is_causal):
        return None
    handles = [
        m.register_forward_hook(
            count_norm if isinstance(m, (nn.LayerNorm, nn.BatchNorm3d))
            else count)
        for m in model.modules() if not is_dualformer or isinstance(
            m, (nn.LayerNorm, nn.BatchNorm3d))]
    ours = count_complexity(model, clips, mode='tensor', stage='head')
    for handle in handles:
        handle.remove()
    if is_dualformer:
        return Complexity(ours.params, ours.macs + sum(norms))
    head, table = model.cls_head, model.backbone.temporal_embed
    return Complexity(
        ours.params + (head.in_channels + 1) * head.num_classes
        + (8 - table.shape[1]) * table.shape[-1], sum(norms) + sum(macs))


def count_both(cfg: Config, shape: Sequence[int]
               ) -> tuple[Complexity, Complexity | None]:
    """Count a config's model on a view: ours, and like the released code."""
    model, view = build_on_meta(cfg, shape)
    ours = count_complexity(model, view, mode='tensor', stage='head')
    return ours, count_as_released(model, view)
