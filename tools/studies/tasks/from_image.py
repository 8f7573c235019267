# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Task: ``clip_model.py`` with an image model to start from.

``image_vit.pth``, in the folder of the data, is a ViT that classifies in which
part of a frame the shape is. The rows of the study start from its weights with
``init_cfg=dict(type='Pretrained', checkpoint='image_vit.pth')``.
"""
from pathlib import Path

import numpy as np
import torch

from mmvidattn.apis.models import load_config

from . import clip_model, motion
from .start import build, fit

SIZES, METRICS, train = clip_model.SIZES, clip_model.METRICS, clip_model.train
# Number of parts along each side of the frame.
PARTS = 4
CONFIG = 'vivit_tiny_motion'
WIDTH = {'model.backbone.embed_dims': 48, 'model.cls_head.in_channels': 48,
         'model.backbone.img_size': motion.SIDE,
         'model.backbone.patch_size': 8}
IMAGE = {
    **WIDTH, 'model.backbone.num_frames': 1,
    'model.backbone.tubelet_frames': 1,
    'model.cls_head.num_classes': PARTS**2
}
STEPS, BATCH, RATE = 400, 32, 2e-3


def _images(clips: motion.Clips) -> motion.Clips:
    """Return the middle frames, labeled with the place of the shape."""
    # Centers lie between 0.3 and 0.7 of the frame.
    parts = (clips.places / motion.SIDE - .3) / .4 * PARTS
    column, row = np.clip(parts.astype(int), 0, PARTS - 1).T
    middle = motion.NUM_FRAMES // 2
    return clips._replace(frames=clips.frames[:, middle:middle + 1],
                          labels=row * PARTS + column)


def prepare(folder: Path, sizes: dict[str, int]) -> dict[str, dict]:
    """Write the clips, and train the image model on the training split."""
    limits = clip_model.prepare(folder, sizes)
    checkpoint = folder / 'image_vit.pth'
    if checkpoint.is_file():
        return limits
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    config = load_config(CONFIG, IMAGE)
    model = build(config, None, 0)
    # With a small share of the data, the program is only being tested.
    small = sizes['train'] < SIZES['train'] / 2
    steps = 2 if small else STEPS
    images = _images(motion.read(folder, 'train'))
    fit(model, config, clip_model.batches(model, images, 0, steps, BATCH),
        RATE, steps)
    right = clip_model.accuracy(model, _images(motion.read(folder, 'test')))
    print(f'image model: top-1 {right:.1f} on {PARTS**2} places')
    tensors = model.backbone.state_dict()
    name = 'patch_embed.projection.weight'
    tensors[name] = tensors[name].squeeze(2)
    part = checkpoint.with_suffix('.part')
    torch.save(dict(state_dict={f'backbone.{key}': value
                                for key, value in tensors.items()}), part)
    part.replace(checkpoint)
    torch.set_num_threads(threads)
    return limits
