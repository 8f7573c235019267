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

from ..layers.lora import merge_lora
from ..utils.checkpoint import is_url, load_checkpoint
from ..utils.config import check_variables
from ..utils.video_backend import apply_video_backend
from .ablations import find_row, list_rows, load_row
from .compiling import compile_in_place
from .config_options import apply_options
from .model_options import check_model_options

PACKAGE = Path(__file__).resolve().parents[1]
# A wheel carries a copy of the configs; a checkout has them beside us.
CONFIG_FOLDERS = (PACKAGE / '.mim/configs', PACKAGE.parent / 'configs')


def _config_folder() -> Path:
    folder = next((path for path in CONFIG_FOLDERS if path.is_dir()), None)
    if folder is None:
        raise FileNotFoundError(
            f'no configs in {" or ".join(map(str, CONFIG_FOLDERS))}')
    return folder


def list_models(pattern: str = '*', ablations: bool = False) -> list[str]:
    """List the names of our models, sorted.

    Args:
        pattern: Pattern as in a shell, e.g. ``'linear_ff_*'``.
        ablations: List the rows of the papers' ablation tables too, e.g.
            ``linear_ff_table05_relu``.
    """
    folder = _config_folder()
    names = [path.stem for path in folder.glob('*.py')]
    if ablations:
        names += [row.path.stem for row in list_rows(folder)]
    return sorted(name for name in names if fnmatch(name, pattern))


def find_config(name: str | Path) -> Path:
    """Find the path of a config.

    The path of a row of an ablation table is ``<row>.py`` beside the table;
    no file has it, and :func:`load_config` reads the row.

    Args:
        name: One of :func:`list_models`, an ablation included, a recognizer
            that others read features of (``configs/_base_/features``), or
            the path of a config file or of a row.

    Raises:
        FileNotFoundError: If it is a path, and there is no such file.
        ValueError: If it is a name, and there is no such model.
    """
    path = Path(name)
    if path.is_file():
        return path
    if path.suffix or len(path.parts) > 1:
        row = find_row(path.stem, path.resolve().parent)
        if row is None or path.suffix != '.py':
            raise FileNotFoundError(f'no config file {name}')
        return path
    folder = _config_folder()
    for place in folder, folder / '_base_/features':
        if (place / f'{name}.py').is_file():
            return place / f'{name}.py'
    row = find_row(str(name), folder)
    if row is not None:
        return row.path
    close = difflib.get_close_matches(
        str(name), list_models(ablations=True), cutoff=0.4)
    raise ValueError(
        f'no model {str(name)!r}; '
        + (f'did you mean {" or ".join(close)}? ' if close else '')
        + 'mmvidattn.list_models() lists all')


def load_config(name: str | Path,
                cfg_options: dict[str, Any] | None = None) -> Config:
    """Read a config.

    Args:
        name: See :func:`find_config`.
        cfg_options: Options to change in it, by dotted keys; see
            :func:`~mmvidattn.apis.config_options.apply_options`.

    Raises:
        ImportError: If its ``video_backend`` is not installed.
        ValueError: If its ``video_backend`` is none, or if it sets a
            number that does not reach the options that depend on it; see
            :func:`~mmvidattn.utils.config.check_variables`.
    """
    path = find_config(name)
    row = None if path.is_file() else find_row(
        path.stem, path.resolve().parent)
    if row is None:
        cfg = Config.fromfile(path)
        check_variables(cfg, path.read_text('utf-8'))
    else:
        cfg = load_row(row)
    if cfg_options:
        apply_options(cfg, cfg_options)
    apply_video_backend(cfg)
    return cfg


def published_hash(checkpoint: str | Path) -> str | None:
    """The SHA-256 that a metafile of ours gives for a URL of weights.

    It is ``SHA256`` of the model of which ``Weights`` is that URL.
    """
    if not is_url(checkpoint):
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
              cfg_options: dict[str, Any] | None = None,
              compile: bool = False,
              optional: str | None = None) -> nn.Module:
    """Build a whole recognizer, in eval mode.

    ``model(clips, mode='tensor', stage='head')`` with clips
    [B, num_crops, C, T, H, W], normalized, returns the logits of each crop,
    [B * num_crops, num_classes]. ``model.cfg`` is its config and
    ``model.dataset_meta`` what its checkpoint tells of the classes. Updates
    of LoRA are merged into the weights.

    Args:
        name: One of :func:`list_models`, or the path of a config file.
        checkpoint: Weights of exactly this model. Defaults to fresh ones. One
            that ``mmvidattn convert --config`` wrote knows the options that
            tensors do not tell, and is refused if they are others.
        device: Where to put the model.
        cfg_options: What to change in the config, by dotted keys, e.g.
            ``{'model.cls_head.num_classes': 8}``.
        compile: Compile the backbone with torch.compile. The first call takes
            a minute or more, later ones are faster. Without a compiler a line
            on stderr says so, and the model computes eagerly.
        optional: Prefix of tensors that are not read from the checkpoint, and
            may be missing there or of another shape: 'cls_head.fc_cls.' where
            only features are wanted.
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
            model, checkpoint, published_hash(checkpoint), optional)
        check_model_options(cfg.model, meta, checkpoint)
    merge_lora(model)
    model.cfg = cfg
    model.dataset_meta = meta.get('dataset_meta') or {}
    model = model.to(device).eval()
    if compile:
        compile_in_place(model.backbone)
    return model
