# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Save a trained model as a bundle."""
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from .bundle_file import clean_config, write_bundle
from .config import find_config
from .labels import find_labels
from .models import get_model

THRESHOLDS = 'on', 'off', 'min_duration'


def save_bundle(out: str | Path,
                config: str | Path,
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
        config: Name of a config, or its path.
        checkpoint: Checkpoint of exactly this model.
        labels: Class names. Defaults to the names in the checkpoint, or else
            in the config.
        thresholds: ``on``, ``off`` and ``min_duration`` of events in a stream,
            and ``thresholds`` of some classes; see
            :class:`~mmvidattn.live.EventDetector`. Defaults to
            ``online.events`` of the config.
        seconds: Length of the sliding window in a stream. Defaults to
            ``online.seconds`` of the config.
        stride: Seconds between windows in a stream. Defaults to
            ``online.stride`` of the config.
        replace: Replace an existing bundle. Defaults to False.

    Returns:
        Path of the bundle.

    Raises:
        FileExistsError: If ``out`` exists, unless it is a bundle and
            ``replace`` is True.
        ValueError: If the checkpoint does not fit, the number of labels is
            wrong, a threshold is unknown, or the config contains code.
    """
    allowed = *THRESHOLDS, 'thresholds'
    unknown = sorted({*(thresholds or {})} - {*allowed})
    if unknown:
        raise ValueError(f'thresholds may have {", ".join(allowed)}, got '
                         f'{", ".join(unknown)}')
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
    return write_bundle(out, find_config(config).stem, clean, labels,
                        model.state_dict(), replace)
