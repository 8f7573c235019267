# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Classify a long list of videos, with a JSON file for each one."""
import argparse
import hashlib
import json
import logging
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from mmengine.logging import MMLogger

from ..apis import VideoClassifier, read_labels
from ..apis.many_videos import open_folder, plan_videos, process_videos
from ..apis.runner import one_line_errors
from ..utils.files import write_atomically
from ..utils.remote_files import local_path
from .model_argument import split_model
from .predict import check_labels

_classifier: tuple[tuple, VideoClassifier] | None = None


def load_classifier(*model: Any) -> VideoClassifier:
    """Build the classifier of a process, unless it has it.

    Args:
        model: Model, checkpoint, device and labels.
    """
    global _classifier
    if _classifier is None or _classifier[0] != model:
        # Silence mmengine's warnings about its own deprecated calls.
        MMLogger.get_current_instance().setLevel(logging.ERROR)
        _classifier = model, VideoClassifier(*model)
    return _classifier[1]


def make_predict(out: Path, *model: Any) -> Callable[[str, str], None]:
    """Return the function of a video and its name, for this process."""
    classifier = load_classifier(*model)

    def predict(source: str, name: str) -> None:
        result = classifier(local_path(source)).as_dict()
        text = json.dumps(dict(result, video=source))
        write_atomically(out / f'{name}.json', f'{text}\n', to_disk=False,
                         shared=True)

    return predict


def run(args: argparse.Namespace) -> None:
    with one_line_errors():
        sources, config, checkpoint = split_model([*args.videos, *args.model])
        videos = plan_videos(sources)
        labels = read_labels(args.labels) if args.labels else None
        model = config, checkpoint, args.device, labels
        # Build the network here first, to report errors once.
        classifier = load_classifier(*model)
        check_labels(classifier, args.labels, labels)
        # The name does not end with .json, as names of videos do.
        open_folder(args.json, 'options', dict(
            config=hashlib.sha256(str(
                classifier.model.cfg.to_dict()).encode()).hexdigest(),
            model=config, checkpoint=checkpoint, labels=classifier.labels),
            'predict')
        process_videos(
            'Predicting', videos, args.json, '.json',
            partial(make_predict, args.json.absolute(), *model),
            engine=args.engine, processes=args.processes, device=args.device)
