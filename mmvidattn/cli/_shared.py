# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Code shared by several commands."""
import argparse
from collections.abc import Callable
from pathlib import Path

import numpy as np
from mmengine.config import DictAction
from mmengine.dataset import Compose, pseudo_collate
from mmengine.device import get_device
from mmengine.registry import init_default_scope
from torch import nn


def parser_of(doc: str) -> argparse.ArgumentParser:
    """Create the parser of a command from its module's docstring."""
    return argparse.ArgumentParser(description=doc.splitlines()[0])


def add_config(parser: argparse.ArgumentParser,
               checkpoint: bool = True) -> None:
    """Add the arguments CONFIG and CHECKPOINT."""
    parser.add_argument('config', help='config file, or its name')
    if checkpoint:
        parser.add_argument('checkpoint', help='checkpoint file')


def add_cfg_options(parser: argparse.ArgumentParser) -> None:
    """Add the option that changes a config."""
    parser.add_argument(
        '--cfg-options', nargs='+', action=DictAction, metavar='KEY=VALUE',
        help='change the config, by dotted keys')


def add_device(parser: argparse.ArgumentParser) -> None:
    """Add the option --device, with the best available device as default."""
    parser.add_argument(
        '--device', default=get_device(),
        help='device to compute on (default on this machine: %(default)s)')


def positive(text: str) -> float:
    """Parse a number above 0."""
    value = float(text)
    if not value > 0:
        raise argparse.ArgumentTypeError(f'must be positive, got {text}')
    return value


def at_least(least: int) -> Callable[[str], int]:
    """Return a parser of integers >= ``least``."""

    def parse(text: str) -> int:
        value = int(text)
        if value < least:
            raise argparse.ArgumentTypeError(
                f'must be at least {least}, got {text}')
        return value

    # argparse shows this name if the text is not a number.
    parse.__name__ = 'int'
    return parse


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
    pipeline = Compose(model.cfg.get('val_pipeline', model.cfg.test_pipeline))
    try:
        data = pipeline(
            dict(filename=str(video), label=-1, start_index=0, modality='RGB'))
    except Exception as error:
        # The lines after the first are decord's stack trace.
        reason = (str(error).strip() or type(error).__name__).splitlines()[0]
        raise ValueError(f'cannot read {video}: {reason}') from error
    data['inputs'] = data['inputs'][:1]
    frames = data['inputs'][0].permute(1, 2, 3, 0).numpy()
    return frames, pseudo_collate([data])
