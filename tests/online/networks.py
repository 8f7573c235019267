# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Small online detectors with MiniROAD or MAT, and videos for them."""
import torch
from mmaction.registry import MODELS
from mmengine.registry import init_default_scope
from torch.utils._python_dispatch import TorchDispatchMode

from mmvidattn.datasets.feature_windows import (
    dense_long_indices,
    long_padding_mask,
)

ATEN = torch.ops.aten
# Ops that wait for the device, because a number or a size is read.
WAITING = {
    ATEN._local_scalar_dense.default, ATEN.nonzero.default,
    ATEN.masked_select.default, ATEN.is_nonzero.default,
    ATEN.repeat_interleave.Tensor, ATEN._unique2.default
}
BACKBONES = dict(
    miniroad=dict(
        type='MiniROAD', embed_dims=8, proj_dims=12, num_layers=2,
        work_memory_length=5),
    mat=dict(
        type='MAT', embed_dims=8, num_heads=2, ffn_dims=12,
        long_memory_length=12, work_memory_length=5,
        num_anticipation_tokens=2, num_groups=3, num_queries=4,
        num_future_queries=6, num_future_tokens=9))


class NeverWait(TorchDispatchMode):
    """Mode in which an op that waits for the device is an error."""

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        masks = func is ATEN.index.Tensor and [
            x for x in args[1] if x is not None and x.dtype == torch.bool]
        if func in WAITING or masks:
            raise RuntimeError(f'{func} waits for the device')
        return func(*args, **(kwargs or {}))


def build_detector(name, head=None, **kwargs):
    init_default_scope('mmaction')
    backbone = dict(
        BACKBONES[name], in_channels=dict(rgb=6, flow=4), **kwargs)
    return MODELS.build(dict(
        type='OnlineActionDetector',
        backbone=backbone,
        cls_head=dict(
            type='MATHead' if name == 'mat' else 'OnlineActionHead',
            num_classes=5, in_channels=backbone['embed_dims'], score='logit',
            **(head or {}))))


def random_detector(name, **kwargs):
    """Build a float64 detector whose weights are all random.

    Initial biases and distances are zeros, which would hide mistakes.
    """
    torch.manual_seed(0)
    model = build_detector(name, **kwargs)
    for key, x in model.named_parameters():
        torch.nn.init.normal_(x, 'norm.weight' in key, 0.5)
    return model.double().eval()


def video_like(channels, length=40, dtype=torch.float64, seed=0):
    gen = torch.Generator().manual_seed(seed)
    return {name: torch.randn(length, width, generator=gen, dtype=dtype)
            for name, width in channels.items()}


def video_of(model, *args, **kwargs):
    return video_like(model.backbone.in_channels, *args, **kwargs)


def frame_of(video, t):
    return {name: x[t] for name, x in video.items()}


def window_of(backbone, t, long_rate, work_rate, stretch):
    """Return the dataset's window of frame t.

    Returns:
        Frames of the long memory, their padding mask, the first frame of the
        work memory, and the place of frame t in it.
    """
    length = backbone.long_memory_length * long_rate
    place = min(t // work_rate, backbone.work_memory_length - 1)
    start = t - work_rate * place
    long = dense_long_indices(start, length, long_rate, not stretch)
    return (torch.from_numpy(long), torch.from_numpy(long_padding_mask(long)),
            start, place)
