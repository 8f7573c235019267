# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Predictions of what happens in a video."""
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import torch
from mmengine.dataset import Compose, pseudo_collate
from mmengine.fileio import list_from_file
from mmengine.registry import init_default_scope
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


def top_predictions(model: nn.Module, scores: Tensor, labels: Sequence[str],
                    topk: int) -> list[Prediction]:
    """The best classes of the ``pred_score`` [K] that a model gave.

    See :func:`predict_video`.
    """
    if getattr(model.cls_head, 'average_clips', None) == 'score':
        scores = scores.softmax(-1)
    best = scores.topk(min(topk, len(scores)))
    return [
        Prediction(i, labels[i] if i < len(labels) else f'class {i}', score)
        for score, i in zip(best.values.tolist(), best.indices.tolist())
    ]


def predict_video(model: nn.Module,
                  video: str | Path,
                  topk: int = 5,
                  labels: Sequence[str] | None = None) -> list[Prediction]:
    """Recognise what happens in a video, with the config's test pipeline.

    Args:
        model: Of :func:`mmvidattn.get_model`.
        video: A video file.
        topk: How many classes to return, at most.
        labels: Names of the classes. Defaults to those the model knows;
            a class without a name is called e.g. ``class 3``.

    Returns:
        The most probable classes, best first.

    Raises:
        FileNotFoundError: If there is no such file.
        ValueError: If it can't be read.
    """
    if not Path(video).is_file():
        raise FileNotFoundError(f'no video {video}')
    init_default_scope(model.cfg.get('default_scope', 'mmaction'))
    pipeline = Compose(model.cfg.test_pipeline)
    try:
        data = pipeline(
            dict(filename=str(video), label=-1, start_index=0,
                 modality='RGB'))
    except Exception as error:
        # The lines after the first are decord's stack trace.
        reason = (str(error).strip() or type(error).__name__).splitlines()[0]
        raise ValueError(f'cannot read {video}: {reason}') from error
    with torch.no_grad():
        scores = model.test_step(pseudo_collate([data]))[0].pred_score
    if labels is None:
        labels = find_labels(model)
    return top_predictions(model, scores, labels, topk)
