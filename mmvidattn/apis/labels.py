# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Classes, their names, and how probable a model finds them."""
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from mmengine.fileio import list_from_file
from torch import Tensor, nn


class Prediction(NamedTuple):
    """A class and how probable it is."""
    index: int
    label: str
    score: float


def read_labels(path: str | Path) -> list[str]:
    """The names of the classes in a file, one on each line."""
    if not Path(path).is_file():
        raise FileNotFoundError(f'no file of labels {path}')
    return [line.strip() for line in list_from_file(
        path, encoding='utf-8-sig') if line.strip()]


def find_labels(model: nn.Module) -> list[str]:
    """Names of a model's classes: its checkpoint's, else its config's.

    Args:
        model: Of :func:`mmvidattn.get_model`.

    Returns:
        The names; empty if neither has them.
    """
    sources = [model.dataset_meta]
    for split in 'test_dataloader', 'train_dataloader':
        dataset = (model.cfg.get(split) or {}).get('dataset', {})
        sources.append(dataset.get('metainfo') or {})
    for source in sources:
        classes = source.get('classes', '')
        if not isinstance(classes, str):
            return list(classes)
        if Path(classes).is_file():
            return read_labels(classes)
    return []


def probabilities(model: nn.Module, scores: Tensor) -> Tensor:
    """Probabilities [K], on the CPU, of the ``pred_score`` of a model.

    They are what it gave, unless its views were averaged before softmax.
    """
    if getattr(model.cls_head, 'average_clips', None) == 'score':
        scores = scores.softmax(-1)
    return scores.float().cpu()


def top_predictions(probabilities: Tensor, labels: Sequence[str],
                    topk: int) -> list[Prediction]:
    """The best classes of probabilities [K], best first."""
    best = probabilities.topk(min(topk, len(probabilities)))
    return [
        Prediction(i, labels[i] if i < len(labels) else f'class {i}', score)
        for score, i in zip(best.values.tolist(), best.indices.tolist())
    ]
