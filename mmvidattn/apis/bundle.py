# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Save a trained model, as a bundle or as checkpoints to publish."""
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from mmengine.config import Config
from safetensors import SafetensorError
from torch import nn

from ..utils.checkpoint import save_tensors
from ..utils.printable import brief
from ..version import __version__
from .bundle_file import clean_config, write_bundle
from .labels import find_labels
from .models import get_model

THRESHOLDS = 'on', 'off', 'min_duration'
# Suffixes of checkpoints to publish.
SUFFIXES = '.pth', '.safetensors'
# Config keys that belong to a run, not to the model.
RUN_KEYS = 'work_dir', 'load_from', 'resume', 'launcher'


def save_bundle(out: str | Path,
                config: str | Path | Config,
                checkpoint: str | Path,
                labels: Sequence[str] | None = None,
                thresholds: Mapping[str, Any] | None = None,
                seconds: float | None = None,
                stride: float | None = None,
                replace: bool = False) -> Path:
    """Write a model as a bundle, which runs on any machine.

    A bundle replaces a config and a checkpoint::

        save_bundle('my_model', 'linear_ff_tiny_motion', 'best.pth')
        VideoClassifier('my_model')('video.mp4')

    It contains the weights (the averaged weights if training averaged them;
    LoRA updates are merged), the config without inheritance and paths, the
    class names, the thresholds of events, and versions. See
    :func:`~mmvidattn.apis.load_bundle`.

    Args:
        out: Folder to write, or file that ends with ``.zip``.
        config: Name of a config, its path, or a loaded config.
        checkpoint: Checkpoint of exactly this model.
        labels: Class names. Defaults to the names in the checkpoint, or else
            in the config.
        thresholds: ``on``, ``off`` and ``min_duration`` of events in a stream,
            and ``thresholds`` of some classes; see
            :class:`~mmvidattn.live.EventDetector`. Defaults to
            ``online.events`` of the config.
        seconds, stride: Length of the sliding windows in a stream, and seconds
            between them. Default to ``online`` of the config.
        replace: Replace an existing bundle. Defaults to False.

    Returns:
        Path of the bundle.

    Raises:
        FileExistsError: If ``out`` exists, unless it is a bundle and
            ``replace`` is True.
        ValueError: If the checkpoint does not fit, the number of labels is
            wrong, a threshold is unknown, or the config contains code.
    """
    unknown = sorted({*(thresholds or {})} - {*THRESHOLDS, 'thresholds'})
    if unknown:
        raise ValueError(f'thresholds may have {", ".join(THRESHOLDS)} and '
                         f'thresholds, got {", ".join(unknown)}')
    model = get_model(config, checkpoint)
    labels = find_labels(model) if labels is None else list(labels)
    number = model.cls_head.num_classes
    if labels and len(labels) != number:
        raise ValueError(f'labels must have one name for each of the {number} '
                         f'classes, got {len(labels)}')
    clean = clean_config(model.cfg)
    online = clean['online']
    if thresholds:
        online['events'] = {**online.get('events', {}), **thresholds}
    online |= {key: value for key, value in dict(
        seconds=seconds, stride=stride).items() if value is not None}
    name = Path(model.cfg.filename or 'model').stem
    return write_bundle(out, name, clean, labels, model.state_dict(), replace)


def save_release(model: nn.Module, paths: Mapping[str, Path]) -> None:
    """Write a model's weights, config and class names.

    Args:
        model: Model from :func:`mmvidattn.get_model`.
        paths: Path of the file to write for each of ``SUFFIXES``.

    Raises:
        OSError: If a file cannot be written, for example on a full disk.
    """
    # safetensors needs contiguous tensors that do not share memory.
    weights = {name: value.detach().clone().contiguous()
               for name, value in model.state_dict().items()}
    cfg = model.cfg.copy()
    for name in RUN_KEYS:
        cfg.pop(name, None)
    meta = dict(
        cfg=cfg.pretty_text,
        dataset_meta=dict(model.dataset_meta),
        mmvidattn_version=__version__)
    try:
        torch.save(dict(meta=meta, state_dict=weights), paths['.pth'])
        # The header of safetensors accepts only strings.
        save_tensors(weights, paths['.safetensors'], dict(
            meta, format='pt', dataset_meta=json.dumps(meta['dataset_meta'])))
    # torch and safetensors have own errors for a full disk.
    except (RuntimeError, SafetensorError, OSError) as error:
        for path in paths.values():
            path.unlink(missing_ok=True)
        names = ' and '.join(str(path) for path in paths.values())
        raise OSError(f'cannot write {names}: {brief(error)}') from error
