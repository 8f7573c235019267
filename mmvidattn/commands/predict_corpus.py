# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Classify a long list of videos, in shards."""
import argparse
import hashlib
import logging
from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from mmengine.logging import MMLogger

from ..apis import VideoClassifier, read_labels
from ..apis.runner import one_line_errors
from ..corpus.folder import open_folder
from ..corpus.job import Job
from ..corpus.manifest import Item, open_manifest
from ..corpus.run import exit_with_faults, run_corpus
from ..corpus.shards import values_of
from ..utils.remote_files import local_file
from ..utils.worker_pool import start_method_for
from .model_argument import split_model
from .predict import check_labels

COLUMNS = dict(label='string', score='float', shape='list<int64>',
               values='list<float>')
_classifier: tuple[tuple, VideoClassifier] | None = None


def load_classifier(*model: Any) -> VideoClassifier:
    """Build the classifier of a process, unless it was forked.

    Args:
        model: Model, checkpoint, device and labels.
    """
    global _classifier
    if _classifier is None or _classifier[0] != model:
        # Silence mmengine's warnings about its own deprecated calls.
        MMLogger.get_current_instance().setLevel(logging.ERROR)
        # OpenMP threads do not survive a fork.
        torch.set_num_threads(1)
        _classifier = model, VideoClassifier(*model)
    return _classifier[1]


def make_predict(*model: Any) -> Callable[[Item], dict[str, Any]]:
    """Return the function of an item, for a worker process."""
    classifier = load_classifier(*model)

    def predict(item: Item) -> dict[str, Any]:
        with local_file(item.source) as video:
            result = classifier(video, topk=1)
        best, = result.predictions
        return dict(values_of(result.probabilities.numpy()), label=best.label,
                    score=best.score)

    return predict


def run(args: argparse.Namespace) -> None:
    with one_line_errors():
        sources, config, checkpoint = split_model([*args.videos, *args.model])
        labels = read_labels(args.labels) if args.labels else None
        model = config, checkpoint, args.device, labels
        # Build the network here first, to report errors once.
        classifier = load_classifier(*model)
        check_labels(classifier, args.labels, labels)
        open_folder(args.out, 'predictions.json', dict(
            config=hashlib.sha256(str(
                classifier.model.cfg.to_dict()).encode()).hexdigest(),
            model=config, checkpoint=checkpoint, labels=classifier.labels),
            'predict --engine')
        manifest = open_manifest(args.out, sources, args.shard_size)
    job = Job('Predicting', partial(make_predict, *model), COLUMNS,
              args.processes, args.device,
              dict(start_method=start_method_for(args.device)))
    exit_with_faults(run_corpus(args.out, manifest, job, args.engine,
                                args.shard, args.lease))
