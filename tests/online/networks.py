# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Small online detectors, videos for them, and the dataset's windows."""
import inspect
from functools import cache

import numpy as np
import torch
from mmaction.registry import MODELS
from torch.utils._python_dispatch import TorchDispatchMode

import mmvidattn
from mmvidattn.apis.config import load_config
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
# Small sizes of every network.
SMALL = dict(
    long_memory_length=9, work_memory_length=4, num_anticipation_tokens=2,
    num_groups=3, embed_dims=16, num_heads=2, ffn_dims=24)
SMALL_IMAGES = {
    'model.backbone.encoder.embed_dims': 16,
    'model.backbone.encoder.num_heads': 2,
    'model.backbone.encoder.num_layers': 2,
    'model.backbone.encoder.patch_frames': 3,
    'model.backbone.encoder.patch_stride': 12,
    'model.backbone.encoder.patch_padding': 4,
    'model.backbone.encoder.decay.half_life': (4., 30.),
    'model.cls_head.in_channels': 16,
    'model.data_preprocessor.mean': [100., 120., 130.],
    'model.data_preprocessor.std': [50., 60., 70.]}
# TeSTra and LSTR by the options of their reference, and our names of these.
VARIANTS = {
    'box': {},
    'laplace': dict(decay=0.7),
    'no-fuse': dict(fusion='none'),
    'lstr': dict(fusion='none', long_pos=True),
    'long-memory': dict(fusion='long', decay=0.7),
    'long-memory-positions': dict(fusion='long', long_pos=True),
    'short-only': dict(long=0, tokens=2),
    'anticipation': dict(tokens=3, decay=0.9, num_heads=4),
    'no-positions': dict(work_pos=False, tokens=2),
    'deep-gelu': dict(encoder=((3, 2), (5, 1), (4, 1)), num_layers=3,
                      act='gelu'),
    'shallow': dict(encoder=((3, 1), ), num_layers=1, tokens=1),
    'lstr-refined': dict(encoder=((4, 1), (None, 2)), fusion='none',
                         long_pos=True),
    'verbs-and-nouns': dict(verbs=4, nouns=5, tokens=2),
}
NAMES = dict(
    long='long_memory_length', work='work_memory_length',
    tokens='num_anticipation_tokens', long_pos='long_memory_pos_embed',
    work_pos='work_memory_pos_embed')


class NeverWait(TorchDispatchMode):
    """Mode in which an op that waits for the device is an error."""

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        masks = func is ATEN.index.Tensor and [
            x for x in args[1] if x is not None and x.dtype == torch.bool]
        if func in WAITING or masks:
            raise RuntimeError(f'{func} waits for the device')
        return func(*args, **(kwargs or {}))


def build_detector(backbone, head='OnlineActionHead', **options):
    """Build a detector from the options of its backbone and its head."""
    return MODELS.build(dict(
        type='OnlineActionDetector', backbone=backbone,
        cls_head=dict(type=head, score='logit',
                      in_channels=backbone['embed_dims'], **options)))


def detector_of(options, **backbone):
    """Build TeSTra with options of the reference."""
    options = dict(options)
    classes = dict(num_classes=options.pop('classes', 7),
                   num_verbs=options.pop('verbs', None),
                   num_nouns=options.pop('nouns', None))
    channels = options.pop('in_channels', (10, 6))
    encoder = [dict(num_queries=n, num_layers=depth) for n, depth in
               options.pop('encoder', ((4, 1), (6, 2)))]
    renamed = {NAMES.get(name, name): x for name, x in options.items()}
    return build_detector({**dict(
        type='TeSTra', in_channels=dict(zip(('rgb', 'flow'), channels)),
        embed_dims=16, num_heads=2, ffn_dims=24, long_memory_length=12,
        work_memory_length=5, drop_rate=0., encoder=encoder),
        **renamed, **backbone}, **classes)


@cache
def tiny_configs():
    """Return the name of the tiny config of each network."""
    return {load_config(config).model.backbone.type: config
            for config in mmvidattn.list_models('*_tiny_synthetic')}


def small_detector(network, **options):
    """Build a float64 detector of a tiny config with short memories.

    All weights are random: initial biases and distances are zeros, which would
    hide mistakes.
    """
    known = inspect.signature(MODELS.get(network).__init__).parameters
    options = {**{key: value for key, value in SMALL.items() if key in known},
               **options}
    changes = {f'model.backbone.{key}': x for key, x in options.items()}
    if 'embed_dims' in options:
        changes['model.cls_head.in_channels'] = options['embed_dims']
    if network == 'OnlineVideoEncoder':
        changes = {**SMALL_IMAGES, **changes}
    torch.manual_seed(0)
    model = mmvidattn.get_model(tiny_configs()[network], cfg_options=changes)
    for key, x in model.named_parameters():
        if 'log_factor' not in key:
            torch.nn.init.normal_(x, 'norm' in key and 'weight' in key, .3)
    return model.double().eval()


def video_of(model, length=40, dtype=torch.float64, seed=0):
    """Return random features of a video, [T, C] for each modality."""
    gen = torch.Generator().manual_seed(seed)
    return {name: torch.randn(length, width, generator=gen, dtype=dtype)
            for name, width in model.backbone.in_channels.items()}


def frame_of(video, t):
    return {name: x[t] for name, x in video.items()}


def images_like(length, seed=0):
    """Make frames of a video, [T, 3, 32, 32]."""
    gen = torch.Generator().manual_seed(seed)
    return torch.randint(256, (length, 3, 32, 32), generator=gen).double()


@torch.no_grad()
def scores_of_images(model, images, elapsed=None):
    """Score images [T, 3, H, W] in one pass: [T, 1 + A, K]."""
    backbone = model.backbone
    inputs = dict(frames=clip_of(model, images))
    if elapsed is not None:
        inputs['elapsed'] = torch.as_tensor(elapsed)[None].to(images)
    x = backbone.forward_causal(inputs)[0][0]
    x = torch.cat([x[:, None], backbone.anticipate(x)], dim=1)
    return model.cls_head(x)['action']


def clip_of(model, images):
    """Normalize images [T, 3, H, W] to a clip [1, 3, T, H, W]."""
    mean, std = (getattr(model.data_preprocessor, name).view(3, 1, 1)
                 for name in ('mean', 'std'))
    return ((images - mean) / std).transpose(0, 1)[None]


def windows_of(backbone, times, long_rate, work_rate, stretch):
    """Return the dataset's windows of some frames.

    Returns:
        Frames [W, N + L] of the windows, padding masks [W, N], and the places
        of the given frames in the work memories.
    """
    L, frames, masks, places = backbone.work_memory_length, [], [], []
    for t in times:
        places.append(min(t // work_rate, L - 1))
        start = t - work_rate * places[-1]
        long = dense_long_indices(
            start, backbone.long_memory_length * long_rate, long_rate,
            not stretch)
        frames.append([*long, *range(start, start + work_rate * L, work_rate)])
        masks.append(long_padding_mask(long))
    return torch.tensor(frames), torch.from_numpy(np.stack(masks)), places
