# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Options and steps that several commands share."""
import argparse
from collections.abc import Callable
from pathlib import Path

from mmengine.config import DictAction
from mmengine.dataset import Compose, pseudo_collate
from mmengine.device import get_device
from mmengine.registry import init_default_scope
from torch import nn


def parser_of(doc: str) -> argparse.ArgumentParser:
    """Return the parser of a command with this docstring."""
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
    """Add the option of the device, by default the best one here."""
    parser.add_argument(
        '--device', default=get_device(),
        help='where to compute (default here: %(default)s)')


def positive(text: str) -> float:
    """Parse a number above 0."""
    value = float(text)
    if not value > 0:
        raise argparse.ArgumentTypeError(f'must be positive, got {text}')
    return value


def at_least(least: int) -> Callable[[str], int]:
    """Return a parser of integers that are not below ``least``."""

    def parse(text: str) -> int:
        value = int(text)
        if value < least:
            raise argparse.ArgumentTypeError(
                f'must be at least {least}, got {text}')
        return value

    # argparse names it if the text is no number.
    parse.__name__ = 'int'
    return parse


def named_model(text: str) -> tuple[str, str | None]:
    """Split CONFIG[:CHECKPOINT]."""
    config, _, checkpoint = text.partition(':')
    return config, checkpoint or None


def read_clip(model: nn.Module, video: str | Path) -> dict:
    """Read the first view of a video by the validation pipeline, collated.

    Raises:
        FileNotFoundError: If there is no such file.
        ValueError: If the file cannot be read.
    """
    if not Path(video).is_file():
        raise FileNotFoundError(f'no video {video}')
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
    return pseudo_collate([data])
