# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Models by the names of their configs."""
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
from ..utils.checkpoint import is_url, load_checkpoint, load_tensors
from ..utils.config import CONFIG_FOLDERS
from ..utils.video_backend import apply_video_backend
from .ablations import find_row, list_rows, load_row
from .bundle_file import WEIGHTS, is_bundle, load_bundle
from .bundle_types.registry import types_of
from .compiling import compile_in_place
from .config_options import apply_options
from .model_options import check_model_options

PACKAGE = Path(__file__).resolve().parents[1]
# Folder of the bundles in the package, and the value of ``checkpoint`` that
# selects them.
DEFAULTS = PACKAGE / 'weights'
DEFAULT = 'default'
DEFAULT_MODEL = 'linear_ff_tiny_motion'
CHECKPOINT_SUFFIXES = ('.pth', '.pt', '.pyth', '.ckpt', '.bin', '.pkl',
                       '.safetensors')


def config_folder() -> Path:
    """Return the folder of configs, in a checkout or an installed wheel."""
    folder = next((path for path in CONFIG_FOLDERS if path.is_dir()), None)
    if folder is None:
        raise FileNotFoundError(
            f'found no configs in {" or ".join(map(str, CONFIG_FOLDERS))}')
    return folder


def list_models(pattern: str = '*', ablations: bool = False) -> list[str]:
    """List the names of all models, sorted.

    Args:
        pattern: Shell pattern, e.g. ``'linear_ff_*'``. Defaults to ``'*'``.
        ablations: Include the rows of the papers' ablation tables, such as
            ``linear_ff_table05_relu``. Defaults to False.
    """
    folder = config_folder()
    names = [path.stem for path in folder.glob('*.py')]
    if ablations:
        names += [row.path.stem for row in list_rows(folder)]
    return sorted(name for name in names if fnmatch(name, pattern))


def find_config(name: str | Path) -> Path:
    """Find the path of a config.

    For a row of an ablation table, it returns the virtual path ``<row>.py``
    beside the table, which :func:`load_config` can read.

    Args:
        name: Name from :func:`list_models` (including ablations), name of a
            feature extractor in ``configs/_base_/features``, or path of a
            config file, a row or a bundle.

    Raises:
        FileNotFoundError: If ``name`` is a path that does not exist.
        ValueError: If ``name`` is not the name of a model.
    """
    path = Path(name)
    if is_checkpoint(name):
        raise ValueError(f'{name} is a checkpoint, where a config is expected')
    if path.is_file() or is_bundle(path):
        return path
    if path.suffix or len(path.parts) > 1:
        row = find_row(path.stem, path.resolve().parent)
        if row is None or path.suffix != '.py':
            raise FileNotFoundError(
                f'the folder {name} is not a bundle: it has no bundle.json'
                if path.is_dir() else f'no config file {name}')
        return path
    folder = config_folder()
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
        + 'mmvidattn.list_models() lists all models')


def is_checkpoint(name: Any) -> bool:
    """Return True if a path or URL has the suffix of a checkpoint."""
    return str(name).endswith(CHECKPOINT_SUFFIXES)


def is_config(name: Any) -> bool:
    """Return True for the name or the path of a config, except a bundle."""
    if is_bundle(name) or is_checkpoint(name):
        return False
    try:
        path = find_config(name)
    except (ValueError, FileNotFoundError):
        return False
    return path.suffix == '.py'


def find_default(name: str | Path) -> Path:
    """Return the bundle with the weights that come with the package.

    Raises:
        ValueError: If the package has no weights of this model.
    """
    folder = DEFAULTS / find_config(name).stem
    if not is_bundle(folder):
        raise ValueError(
            f'checkpoint={DEFAULT!r} needs one of the models '
            f'{", ".join(path.name for path in sorted(DEFAULTS.iterdir()))}, '
            f'got {name}: pass the path of a checkpoint')
    return folder


def find_weights(name: str | Path, checkpoint: str | Path) -> str | Path:
    """Return the path of a checkpoint, which may be ``'default'``."""
    return (find_default(name) / WEIGHTS if checkpoint == DEFAULT else
            checkpoint)


def load_config(name: str | Path,
                cfg_options: dict[str, Any] | None = None) -> Config:
    """Read a config.

    Args:
        name: Name or path; see :func:`find_config`. A bundle contains only the
            part of its config that predictions need.
        cfg_options: Options to change in the config, by dotted keys; see
            :func:`~mmvidattn.apis.config_options.apply_options`.

    Raises:
        ValueError: If the ``video_backend`` is invalid, or if the file is a
            table of ablations.
    """
    path = find_config(name)
    row = None if path.exists() else find_row(
        path.stem, path.resolve().parent)
    if is_bundle(path):
        cfg = load_bundle(path).config
    elif row is None:
        cfg = Config.fromfile(path)
        if 'rows' in cfg and 'model' not in cfg:
            raise ValueError('a table of ablations is not a config; give the '
                             f'name of a row: {", ".join(cfg["rows"])}')
    else:
        cfg = load_row(row)
    if cfg_options:
        apply_options(cfg, cfg_options)
    apply_video_backend(cfg)
    return cfg


def published_hash(checkpoint: str | Path) -> str | None:
    """Return the SHA-256 of downloadable weights, from the metafiles.

    It is the entry ``SHA256`` of the model whose entry ``Weights`` is the URL.
    """
    if not is_url(checkpoint):
        return None
    for folder in CONFIG_FOLDERS:
        for path in sorted(folder.rglob('metafile.yml')):
            content = yaml.safe_load(path.read_text('utf-8')) or {}
            for model in content.get('Models', ()):
                if model.get('Weights') == str(checkpoint):
                    sha256 = model.get('SHA256')
                    return sha256 and str(sha256)
    return None


def get_model(name: str | Path,
              checkpoint: str | Path | None = None,
              device: str | torch.device = 'cpu',
              cfg_options: dict[str, Any] | None = None,
              compile: bool = False,
              optional: str | None = None) -> nn.Module:
    """Build a recognizer in eval mode.

    ``model(clips, mode='tensor', stage='head')`` with normalized clips
    [B, num_crops, C, T, H, W] returns the logits of each crop,
    [B * num_crops, num_classes]. ``model.cfg`` is the config, and
    ``model.dataset_meta`` is the dataset metadata of the checkpoint, such as
    class names. LoRA updates are merged into the weights.

    Args:
        name: Name from :func:`list_models`, or path of a config file or of a
            bundle.
        checkpoint: Checkpoint of exactly this model, or ``'default'`` for the
            weights that come with the package. Defaults to the weights of a
            bundle, or else to random weights. If the checkpoint stores model
            options (from ``mmvidattn convert --config``), a difference is an
            error.
        device: Device of the model. Defaults to 'cpu'.
        cfg_options: Options to change in the config, by dotted keys, e.g.
            ``{'model.cls_head.num_classes': 8}``.
        compile: Compile the backbone with torch.compile. The first call takes
            a minute or more, and later calls are faster. Without a compiler,
            the model runs eagerly, and a line on stderr reports this. Defaults
            to False.
        optional: Prefix of tensors that the checkpoint may lack or have in
            another shape; they are skipped. Use 'cls_head.fc_cls.' for feature
            extraction.

    Raises:
        ValueError: If config and checkpoint are swapped, do not fit together,
            or are damaged.
    """
    _check_order(name, checkpoint)
    bundle = None
    if checkpoint == DEFAULT:
        bundle = load_bundle(find_default(name))
    elif checkpoint is None and is_bundle(name):
        bundle = load_bundle(name)
    cfg = load_config(name, cfg_options)
    init_default_scope(cfg.get('default_scope', 'mmaction'))
    with types_of(cfg):
        model = MODELS.build(cfg.model)
    meta = {}
    if bundle is not None:
        load_tensors(model, bundle.load_weights(), bundle.path, optional)
        if bundle.labels:
            meta = dict(dataset_meta=dict(classes=bundle.labels))
    elif checkpoint is None:
        # Suppress mmengine's three lines of output per tensor.
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


def _check_order(name: str | Path, checkpoint: str | Path | None) -> None:
    """Raise a ``ValueError`` if config and checkpoint are swapped."""
    if checkpoint is None or checkpoint == DEFAULT:
        return
    if is_bundle(checkpoint):
        raise ValueError(f'{checkpoint} is a bundle: pass it instead of the '
                         'config, without a checkpoint')
    if is_config(checkpoint):
        raise ValueError(
            f'{checkpoint} is a config, where a checkpoint is expected'
            + (f': swap it with {name}' if is_checkpoint(name) else ''))
