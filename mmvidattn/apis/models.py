# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Models by the names of their configs, and their weights."""
import copy
import inspect
import json
import re
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from mmaction.registry import MODELS
from mmengine.config import Config
from mmengine.registry import init_default_scope
from torch import nn

from ..layers.lora import merge_lora
from ..utils.checkpoint import load_checkpoint, load_tensors
from .bundle_file import WEIGHTS, is_bundle, load_bundle
from .bundle_types.registry import types_of
from .config import (
    find_config,
    is_config,
    load_config,
    located_errors,
    name_of,
)
from .published import PUBLISHED, list_published, published_checkpoint

# Folder of the bundles in the package, and the value of ``checkpoint`` that
# selects them.
DEFAULTS = Path(__file__).resolve().parents[1] / 'weights'
DEFAULT = 'default'
DEFAULT_MODEL = 'linear_ff_tiny_motion'
# Key of a backbone's options in the metadata of a checkpoint.
MODEL_OPTIONS = 'model_options'
# Options that affect training or speed, but not the outputs.
WITHOUT_EFFECT = re.compile(
    r'with_cp|pretrained|froze\w*|(\w*_)?(init|drop)\w*')


def find_default(name: str | Path) -> Path:
    """Return the bundle of the package for a model, or raise ValueError."""
    folder = DEFAULTS / find_config(name).stem
    if not is_bundle(folder):
        raise ValueError(
            f'checkpoint={DEFAULT!r} needs one of the models '
            f'{", ".join(path.name for path in sorted(DEFAULTS.iterdir()))}, '
            f'got {name}: pass the path of a checkpoint')
    return folder


def find_weights(name: str | Path, checkpoint: str | Path) -> str | Path:
    """Return the path of a checkpoint, which may not be a config or a bundle.

    It may be ``'default'``, ``'published'`` or a name from
    :func:`~mmvidattn.apis.published.list_published`.
    """
    if checkpoint == DEFAULT:
        return find_default(name) / WEIGHTS
    if str(checkpoint) == PUBLISHED:
        return published_checkpoint(find_config(name).stem)
    if str(checkpoint) in list_published() and not Path(checkpoint).exists():
        return published_checkpoint(str(checkpoint))
    if is_bundle(checkpoint):
        raise ValueError(f'{checkpoint} is a bundle: pass it instead of the '
                         'config, without a checkpoint')
    if is_config(checkpoint):
        raise ValueError(
            f'{checkpoint} is a config, where a checkpoint is expected')
    return checkpoint


def get_model(name: str | Path | Config,
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
        name: Name from :func:`list_models`, path of a config file or of a
            bundle, or a loaded config.
        checkpoint: Checkpoint of exactly this model, ``'default'`` for the
            weights that come with the package, or ``'published'`` for its
            authors' weights, see ``configs/published.yml``. Defaults to the
            weights of a bundle, or else to random weights. If the checkpoint
            stores model options (from ``mmvidattn convert --config``), a
            difference is an error.
        device: Device of the model. Defaults to 'cpu'.
        cfg_options: Options to change in the config, by dotted keys, e.g.
            ``{'model.cls_head.num_classes': 8}``.
        compile: Compile the backbone with torch.compile. The first call takes
            a minute or more, and later calls are faster. Defaults to False.
        optional: Prefix of tensors that the checkpoint may lack or have in
            another shape; they are skipped. Use 'cls_head.fc_cls.' for feature
            extraction.

    Raises:
        ValueError: If config and checkpoint are swapped, do not fit together,
            or are damaged.
    """
    path, bundle = name_of(name), None
    if checkpoint == DEFAULT:
        bundle = load_bundle(find_default(path))
    elif checkpoint is None and is_bundle(path):
        bundle = load_bundle(path)
        if not isinstance(name, Config):
            name = bundle.config
    if isinstance(name, Config):
        # The model keeps its config.
        name = copy.deepcopy(name)
    cfg = load_config(name, cfg_options)
    if bundle is None and checkpoint is not None:
        checkpoint = find_weights(path, checkpoint)
    init_default_scope(cfg.get('default_scope', 'mmaction'))
    with types_of(cfg), located_errors(cfg):
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
        meta = load_checkpoint(model, checkpoint, optional=optional)
        check_model_options(cfg.model, meta, checkpoint)
    merge_lora(model)
    model.cfg = cfg
    model.dataset_meta = meta.get('dataset_meta') or {}
    model = model.to(device).eval()
    if compile:
        model.backbone.compile()
    return model


def find_model(model: str | Path | Config | nn.Module,
               checkpoint: str | Path | None, device: str | torch.device,
               **kwargs: Any) -> nn.Module:
    """Return a model, or build it; warn if its weights are random."""
    if isinstance(model, nn.Module):
        return model
    name = name_of(model)
    if checkpoint is None and not is_bundle(name):
        warnings.warn(
            f'{name} has random weights, so its predictions are meaningless: '
            'pass a checkpoint', stacklevel=3)
    return get_model(model, checkpoint, device, **kwargs)


def model_options(model: Mapping[str, Any]) -> dict[str, Any]:
    """Return all options of the backbone in ``model``, including defaults."""
    backbone = dict(model['backbone'])
    kind = backbone['type']
    cls = MODELS.get(kind) if isinstance(kind, str) else kind
    options = dict(backbone, type=cls.__name__)
    for base in cls.__mro__:
        for parameter in inspect.signature(base.__init__).parameters.values():
            if parameter.default is not parameter.empty:
                options.setdefault(parameter.name, parameter.default)
    # As types of JSON, to compare lists and tuples.
    return json.loads(json.dumps({
        name: value for name, value in sorted(options.items())
        if not WITHOUT_EFFECT.fullmatch(name)}, default=str))


def check_model_options(model: Mapping[str, Any], meta: Mapping[str, Any],
                        path: Any) -> None:
    """Raise a ``ValueError`` if a checkpoint has other options than a model.

    Nothing is checked if its metadata ``meta`` lack the model options.
    """
    saved = meta.get(MODEL_OPTIONS)
    if not isinstance(saved, Mapping) or 'backbone' not in model:
        return
    options = model_options(model)
    # An option that was added since then had the effect of its default.
    saved = {**model_options(dict(backbone=dict(
        type=model['backbone']['type']))), **saved}
    differing = [
        f'{name} is {saved.get(name)!r} there and {options.get(name)!r} here'
        for name in sorted(saved.keys() | options.keys())
        if saved.get(name) != options.get(name)]
    if differing:
        raise ValueError(
            f'the model of {path} has different options, so its tensors fit '
            f'but the scores would be wrong: {"; ".join(differing)}. It was '
            f'converted for {meta.get("config", "a different config")}')
