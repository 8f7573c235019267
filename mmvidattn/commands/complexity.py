# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Count parameters, multiply-accumulates and FLOPs of a config's model."""
import argparse
import copy
import json
import sys
from collections.abc import Sequence
from pathlib import Path

import torch
from mmaction.registry import MODELS
from mmengine.config import Config
from mmengine.registry import init_default_scope
from torch import Tensor, nn

from ..apis import load_config
from ..apis.bundle_types.registry import types_of
from ..apis.complexity import Complexity, count_complexity
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
from ..recognizers import OnlineActionDetector
from ..utils.checks import to_pair
from ..utils.printable import echo
from ..version import __version__

CROPS = dict(CenterCrop=1, ThreeCrop=3, UniformThreeCrop=3, TenCrop=10)


def _kernel_macs(q: Tensor, k: Tensor, v: Tensor, features: int) -> int:
    """Count K^T V and Q (K^T V), for a number of features per head."""
    tokens = q.shape[:-1].numel() + k.shape[:-1].numel()
    return tokens * features * v.shape[-1]


# Multiply-accumulates of each attention in the released code, from the module,
# q [*, N, G, D], k [*, M, G, D] and v [*, M, G, D].
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
        (q.numel() + k.numel()) * len(attention.projection)
        + _kernel_macs(q, k, v, len(attention.projection))),
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
        raise SystemExit('the pipeline lacks clip_len or crop_size: use '
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


def rows_of(ours: Complexity, released: Complexity | None,
            views: int) -> list[dict]:
    """Return a row for each count. FLOPs of the released code are unknown."""
    rows = [dict(
        counted='all operations', params=ours.params,
        macs_per_view=ours.macs, macs_per_video=ours.macs * views,
        flops_per_view=ours.flops, flops_per_video=ours.flops * views)]
    if released is not None:
        rows.append(dict(
            counted='like the released code', params=released.params,
            macs_per_view=released.macs,
            macs_per_video=released.macs * views))
    return rows


def run(args: argparse.Namespace) -> None:
    cfg = load_config(args.config, args.cfg_options)
    shape, views = (tuple(args.shape), 1) if args.shape else shape_of(cfg)
    views = args.views or views
    ours, released = count_config(cfg, shape)
    rows = rows_of(ours, released, views)

    echo(f'{args.config}: view {"x".join(map(str, shape))}, {views} views '
         'per video')
    units = dict(
        params=('params M', 1e6, 3),
        macs_per_view=('GMACs/view', 1e9, 2),
        macs_per_video=('GMACs/video', 1e9, 2),
        flops_per_view=('GFLOPs/view', 1e9, 2),
        flops_per_video=('GFLOPs/video', 1e9, 2))
    echo(f'{"":28}' + ''.join(f'{name:>13}' for name, _, _ in units.values()))
    for r in rows:
        echo(f'{r["counted"]:28}' + ''.join(
            f'{r[key] / unit:13.{digits}f}' if key in r else f'{"":13}'
            for key, (_, unit, digits) in units.items()))
    echo("The papers' \"GFLOPs\" are multiply-accumulates (GMACs). A FLOP "
         'here is one floating-point operation, including elementwise ones.')
    for op, calls in ours.uncounted.items():
        echo(f'not counted: {op} ({calls} calls)', file=sys.stderr)
    if args.json:
        Path(args.json).write_text(json.dumps(dict(
            version=__version__, config=args.config, shape=shape,
            views=views, counts=rows), indent=2))
    if ours.uncounted:
        raise SystemExit(1)
