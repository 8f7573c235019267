# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Classes, their names, and how probable a model finds them."""
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from torch import Tensor, nn

from ..utils.checks import check_finite
from ..utils.lines import read_lines
from ..utils.printable import printable


class Prediction(NamedTuple):
    """A class and how probable it is."""
    index: int
    label: str
    score: float


def read_labels(path: str | Path) -> list[str]:
    """Read the names of the classes in a file, one on each line.

    See :func:`~mmvidattn.utils.printable.printable`.
    """
    if not Path(path).is_file():
        raise FileNotFoundError(f'no file of labels {path}')
    return [printable(line.strip()) for line in read_lines(path)
            if line.strip()]


def find_labels(model: nn.Module) -> list[str]:
    """Return class names of a model: its checkpoint's, else its config's.

    A config may name a file to read. A checkpoint may not: its author could
    have it read any file.

    Args:
        model: Of :func:`mmvidattn.get_model`.

    Returns:
        The names, with unprintable characters escaped; empty if neither has
        them.
    """
    sources = []
    if not isinstance(model.dataset_meta.get('classes', ''), str):
        sources.append(model.dataset_meta)
    for split in 'test_dataloader', 'train_dataloader':
        dataset = (model.cfg.get(split) or {}).get('dataset', {})
        sources.append(dataset.get('metainfo') or {})
    for source in sources:
        classes = source.get('classes', '')
        if not isinstance(classes, str):
            return [printable(str(name)) for name in classes]
        if Path(classes).is_file():
            return read_labels(classes)
    return []


def probabilities(model: nn.Module, scores: Tensor) -> Tensor:
    """Probabilities [K], on the CPU, of the ``pred_score`` of a model.

    They are what it gave, unless its views were averaged before softmax.

    Raises:
        ValueError: If a score is not finite, as of a diverged model.
    """
    check_finite(pred_score=scores)
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
