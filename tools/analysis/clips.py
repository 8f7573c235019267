# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Options, models and clips of the programs that draw a model's clip."""
import argparse
from pathlib import Path

import numpy as np
from mmengine.config import DictAction
from mmengine.dataset import Compose, pseudo_collate
from mmengine.device import get_device
from mmengine.registry import init_default_scope
from torch import Tensor, nn

from mmvidattn import get_model


def make_parser(doc: str, out: str) -> argparse.ArgumentParser:
    """Return a parser with the options that all programs have."""
    parser = argparse.ArgumentParser(
        description=doc, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('video', type=Path, help='video file')
    parser.add_argument(
        '--model', action='append', required=True,
        metavar='CONFIG[:CHECKPOINT]',
        help='config file or name of a model, with its checkpoint; repeat the '
        'option to compare models')
    parser.add_argument('--cfg-options', nargs='+', action=DictAction,
                        help='change the config: KEY=VALUE ...')
    parser.add_argument('--device', default=get_device(),
                        help='device to compute on (default: %(default)s)')
    parser.add_argument('--out', type=Path, default=Path(out),
                        help='image to write, a png (default: %(default)s)')
    return parser


def load_model(text: str, args: argparse.Namespace) -> tuple[str, nn.Module]:
    """Build the model CONFIG[:CHECKPOINT]; return its name, too."""
    if args.out.suffix != '.png':
        raise ValueError(f'--out must be a .png, got {args.out}')
    config, _, checkpoint = text.partition(':')
    model = get_model(config, checkpoint or None, args.device,
                      args.cfg_options)
    name = Path(config).stem
    return f'{name}, {Path(checkpoint).stem}' if checkpoint else name, model


def find_layer(model: nn.Module, name: str | None, kind: type) -> nn.Module:
    """Return a layer of the backbone by its name, or else the last one."""
    layers = {n: m for n, m in model.backbone.named_modules()
              if isinstance(m, kind)}
    if not layers or name not in (None, *layers):
        raise ValueError(f'--layer must be a {kind.__name__} of the backbone '
                         f'({", ".join(layers) or "none"}), got {name}')
    return layers[name or [*layers][-1]]


def read_clip(model: nn.Module, video: Path) -> tuple[np.ndarray, Tensor]:
    """Return the frames [T, H, W, 3] of a clip, and the model's inputs."""
    init_default_scope(model.cfg.get('default_scope', 'mmaction'))
    pipeline = Compose(model.cfg.get('val_pipeline', model.cfg.test_pipeline))
    try:
        data = pipeline(
            dict(filename=str(video), label=-1, start_index=0, modality='RGB'))
    except Exception as error:
        reason = (str(error).strip() or type(error).__name__).splitlines()[0]
        raise ValueError(f'cannot read {video}: {reason}') from error
    data['inputs'] = data['inputs'][:1]
    frames = data['inputs'][0].permute(1, 2, 3, 0).numpy()
    return frames, model.data_preprocessor(pseudo_collate([data]))['inputs']


def class_of(text: str | None, logits: Tensor, labels: list[str]) -> int:
    """Parse the name or number of a class; None is the prediction."""
    if text is None:
        return int(logits.argmax())
    if text in labels:
        return labels.index(text)
    if text.isdecimal() and int(text) < len(logits):
        return int(text)
    raise ValueError(f'--label must be a class of the model or a number below '
                     f'{len(logits)}, got {text!r}')
