# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Class names and probabilities."""
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from torch import Tensor, nn

from ..utils.arguments import check_finite
from ..utils.printable import printable
from ..utils.text_files import read_lines


class Prediction(NamedTuple):
    """Predicted class with its probability."""
    index: int
    label: str
    score: float


def read_labels(path: str | Path) -> list[str]:
    """Read class names, one per line; escape unprintable characters."""
    if not Path(path).is_file():
        raise FileNotFoundError(f'labels file {path} does not exist')
    names = [printable(line.strip()) for line in read_lines(path)
             if line.strip()]
    if not names:
        raise ValueError(f'labels file {path} has no class names')
    return names


def find_labels(model: nn.Module) -> list[str]:
    """Return the class names in a model's checkpoint, or else in its config.

    A config may name a file with the class names. A checkpoint may not,
    because its author could read any file in this way. Unprintable characters
    are escaped. Without names, the list is empty.
    """
    sources = [model.dataset_meta]
    for split in 'test_dataloader', 'train_dataloader':
        dataset = (model.cfg.get(split) or {}).get('dataset', {})
        sources.append(dataset.get('metainfo') or {})
    for source in sources:
        classes = source.get('classes', '')
        if not isinstance(classes, str):
            return [printable(str(name)) for name in classes]
        if source is not model.dataset_meta and Path(classes).is_file():
            return read_labels(classes)
    return []


def probabilities(model: nn.Module, scores: Tensor) -> Tensor:
    """Convert a model's ``pred_score`` to probabilities [K] on the CPU.

    Scores stay unchanged, unless the head averages the views before softmax,
    or before the sigmoid of a head with ``multi_class``. A score that is not
    finite, such as after divergence, is a ValueError.
    """
    check_finite(pred_score=scores)
    average = getattr(model.cls_head, 'average_clips', None)
    if getattr(model.cls_head, 'multi_class', False) and average != 'prob':
        scores = scores.sigmoid()
    elif average == 'score':
        scores = scores.softmax(-1)
    return scores.float().cpu()


def top_predictions(probabilities: Tensor, labels: Sequence[str],
                    topk: int) -> list[Prediction]:
    """Return the ``topk`` best classes of probabilities [K], best first."""
    best = probabilities.topk(min(topk, len(probabilities)))
    return [Prediction(i, label_of(labels, i), score) for score, i in zip(
        best.values.tolist(), best.indices.tolist())]


def label_of(labels: Sequence[str], index: int) -> str:
    """Return the name of a class, e.g. ``class 3`` if it lacks a name."""
    return labels[index] if index < len(labels) else f'class {index}'
