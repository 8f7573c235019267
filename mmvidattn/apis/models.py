# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Our models, by the names of their configs."""
import difflib
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

import torch
import yaml
from mmaction.registry import MODELS
from mmengine.config import Config
from mmengine.registry import init_default_scope
from torch import nn

from ..utils.checkpoint import load_checkpoint

PACKAGE = Path(__file__).resolve().parents[1]
# A wheel carries a copy of the configs; a checkout has them beside us.
CONFIG_FOLDERS = (PACKAGE / '.mim/configs', PACKAGE.parent / 'configs')


def _configs() -> dict[str, Path]:
    folder = next((path for path in CONFIG_FOLDERS if path.is_dir()), None)
    if folder is None:
        raise FileNotFoundError(
            f'no configs in {" or ".join(map(str, CONFIG_FOLDERS))}')
    return {
        path.stem: path
        for path in sorted(folder.rglob('*.py'))
        if '_base_' not in path.relative_to(folder).parts
    }


def list_models(pattern: str = '*') -> list[str]:
    """Names of our models, sorted.

    Args:
        pattern: As in a shell, e.g. ``'linear_ff_*'``.
    """
    return sorted(name for name in _configs() if fnmatch(name, pattern))


def find_config(name: str | Path) -> Path:
    """The config file of a model.

    Args:
        name: One of :func:`list_models`, or the path of a config file.

    Raises:
        FileNotFoundError: If it is a path, and there is no such file.
        ValueError: If it is a name, and there is no such model.
    """
    path = Path(name)
    if path.is_file():
        return path
    if path.suffix or len(path.parts) > 1:
        raise FileNotFoundError(f'no config file {name}')
    configs = _configs()
    if path.name not in configs:
        close = difflib.get_close_matches(path.name, configs, cutoff=0.4)
        raise ValueError(
            f'no model {path.name!r}; '
            + (f'did you mean {" or ".join(close)}? ' if close else '')
            + 'mmvidattn.list_models() lists all')
    return configs[path.name]


def load_config(name: str | Path,
                cfg_options: dict[str, Any] | None = None) -> Config:
    """Read a config.

    Args:
        name: See :func:`find_config`.
        cfg_options: What to change in it, by dotted keys.
    """
    cfg = Config.fromfile(find_config(name))
    cfg.merge_from_dict(cfg_options or {})
    return cfg


def published_hash(checkpoint: str | Path) -> str | None:
    """The SHA-256 that a metafile of ours gives for a URL of weights.

    It is ``SHA256`` of the model of which ``Weights`` is that URL.
    """
    if not str(checkpoint).startswith(('http://', 'https://')):
        return None
    for folder in CONFIG_FOLDERS:
        for path in sorted(folder.rglob('metafile.yml')):
            content = yaml.safe_load(path.read_text('utf-8')) or {}
            for model in content.get('Models', ()):
                if model.get('Weights') == str(checkpoint):
                    found = model.get('SHA256')
                    return found and str(found)
    return None


def get_model(name: str | Path,
              checkpoint: str | Path | None = None,
              device: str | torch.device = 'cpu',
              cfg_options: dict[str, Any] | None = None) -> nn.Module:
    """Build a whole recognizer, in eval mode.

    ``model(clips, mode='tensor', stage='head')`` with clips
    [B, num_crops, C, T, H, W], normalised, returns the logits of each crop,
    [B * num_crops, num_classes]. ``model.cfg`` is its config and
    ``model.dataset_meta`` what its checkpoint tells of the classes.

    Args:
        name: One of :func:`list_models`, or the path of a config file.
        checkpoint: Weights of exactly this model. Defaults to fresh ones.
        device: Where to put the model.
        cfg_options: What to change in the config, by dotted keys, e.g.
            ``{'model.cls_head.num_classes': 8}``.
    """
    cfg = load_config(name, cfg_options)
    init_default_scope(cfg.get('default_scope', 'mmaction'))
    model = MODELS.build(cfg.model)
    meta = {}
    if checkpoint is None:
        # Else mmengine prints three lines for each tensor.
        model._dump_init_info = lambda *args: None
        model.init_weights()
        del model._dump_init_info
    else:
        meta = load_checkpoint(
            model, checkpoint, published_hash(checkpoint))
    model.cfg = cfg
    model.dataset_meta = meta.get('dataset_meta') or {}
    return model.to(device).eval()
