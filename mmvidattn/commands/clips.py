# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Shared code of the commands that draw a model's clip."""
from pathlib import Path

import numpy as np
from mmengine.dataset import Compose, pseudo_collate
from mmengine.registry import init_default_scope
from torch import nn

from ..apis.bundle_types.registry import types_of


def named_model(text: str) -> tuple[str, str | None]:
    """Split CONFIG[:CHECKPOINT]."""
    config, _, checkpoint = text.partition(':')
    return config, checkpoint or None


def read_clip(model: nn.Module,
              video: str | Path) -> tuple[np.ndarray, dict]:
    """Read the first view of a video with the validation pipeline.

    Returns:
        RGB frames [T, H, W, 3], uint8, and a batch for the data preprocessor.

    Raises:
        FileNotFoundError: If the file does not exist.
        ValueError: If the file cannot be read.
    """
    if not Path(video).is_file():
        raise FileNotFoundError(f'video {video} does not exist')
    init_default_scope(model.cfg.get('default_scope', 'mmaction'))
    with types_of(model.cfg):
        pipeline = Compose(
            model.cfg.get('val_pipeline', model.cfg.test_pipeline))
    try:
        data = pipeline(
            dict(filename=str(video), label=-1, start_index=0, modality='RGB'))
    except Exception as error:
        # Drop all lines after the first: decord adds a stack trace.
        reason = (str(error).strip() or type(error).__name__).splitlines()[0]
        raise ValueError(f'cannot read {video}: {reason}') from error
    data['inputs'] = data['inputs'][:1]
    frames = data['inputs'][0].permute(1, 2, 3, 0).numpy()
    return frames, pseudo_collate([data])
