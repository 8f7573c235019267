# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Classify videos, or time windows of long videos."""
import argparse
import hashlib
import json
import logging
import sys
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from functools import lru_cache, partial
from itertools import chain
from pathlib import Path
from typing import IO, Any

from mmengine.logging import MMLogger
from rich.console import Console
from rich.progress import track

from ..apis import VideoClassifier, VideoPrediction, read_labels
from ..apis.many_videos import open_folder, plan_videos, process_videos
from ..apis.predict import write_json_line
from ..apis.runner import one_line_errors, program_name
from ..apis.video_clips import is_folder_of_videos
from ..datasets.video_facts import list_videos
from ..utils.files import write_atomically
from ..utils.interrupts import one_line_stop
from ..utils.printable import echo, printable
from ..utils.remote_files import local_path
from ..visualization import OUTPUTS, annotate_video
from .model_argument import split_model


def name_videos(inputs: list[str]) -> dict[str, Path]:
    """Return a unique output name for each video."""
    videos = {}
    for source in inputs:
        if is_folder_of_videos(source):
            videos.update((str(path), path.relative_to(source))
                          for path in map(Path, list_videos(source)))
        else:
            videos[source] = Path(Path(source).name)
    return videos


def plan_outputs(videos: dict[str, Path], out: Path | None
                 ) -> dict[str, Path]:
    """Choose the file to write for each video."""
    if out is None:
        return {}
    unreadable = [video for video in videos
                  if Path(video).is_dir() or '://' in video]
    if unreadable:
        raise ValueError('--out needs video files, but '
                         f'{unreadable[0]} is not a video file')
    if out.suffix.lower() in OUTPUTS:
        if len(videos) > 1:
            raise ValueError(f'--out {out} must be a folder for '
                             f'{len(videos)} videos, got one file')
        outputs = {video: out for video in videos}
    else:
        outputs = {video: out / name.with_suffix('.mp4')
                   for video, name in videos.items()}
    taken = {Path(video).resolve() for video in videos}
    count = Counter(outputs.values())
    for video, path in outputs.items():
        if path.resolve() in taken or count[path] > 1:
            raise ValueError(f'--out {out}: the output of {video}, {path}, '
                             'would overwrite another video')
    return outputs


def describe(prediction: VideoPrediction) -> list[str]:
    return [f'{p.score:6.3f}  {p.label}' for p in prediction.predictions]


def caption_windows(windows: Sequence[VideoPrediction], time: float
                    ) -> list[str]:
    """Return the caption of the latest window that contains a time."""
    number = bisect_right(windows, time, key=lambda window: window.start)
    window = windows[max(0, number - 1)]
    lines = [f'{window.start:.2f} to {window.end:.2f} s', *describe(window)]
    # Windows may be shorter than the stride.
    return lines if time < window.end else [''] * len(lines)


def predict_windows(classifier: VideoClassifier, video: str, out: Path | None,
                    args: argparse.Namespace) -> Iterator[VideoPrediction]:
    """Classify the windows of a video; the last result may be an error.

    Args:
        classifier: The classifier.
        video: Name of the video.
        out: Captioned video to write, or None.
        args: Options of the command.
    """
    shown = []
    try:
        for window in classifier.windows(
                video, args.windows, args.stride, batch_size=args.batch_size,
                fps=args.fps):
            echo(f'{video}, {window.start:.2f} to {window.end:.2f} s')
            yield window
            if out is not None and window.error is None:
                shown.append(window)
        if shown:
            annotate_video(video, out, partial(caption_windows, shown))
            echo(f'written: {out}')
    except (ValueError, OSError) as error:
        yield VideoPrediction(video, error=str(error))


def check_labels(classifier: VideoClassifier, path: str | None,
                 labels: Sequence[str] | None) -> None:
    """Check that a file of labels, if any, fits a model.

    Raises:
        ValueError: If its number of labels is wrong.
    """
    num_classes = classifier.model.cls_head.num_classes
    if labels and len(labels) != num_classes:
        raise ValueError(
            f'{path} must have one name for each of the {num_classes} classes '
            f'of the model, got {len(labels)}')


def run(args: argparse.Namespace) -> None:
    # Silence mmengine's warnings about its own deprecated calls.
    MMLogger.get_current_instance().setLevel(logging.ERROR)
    with one_line_errors(), ExitStack() as stack:
        sources, config, checkpoint = split_model(
            [*args.videos, *args.model])
        videos = name_videos(sources)
        outputs = plan_outputs(videos, args.out)
        if args.windows is not None and any(
                path.suffix != '.mp4' for path in outputs.values()):
            raise ValueError('--out must be an .mp4 file or a folder with '
                             f'--windows, got {args.out}')
        labels = read_labels(args.labels) if args.labels else None
        classifier = VideoClassifier(
            config, checkpoint, args.device, labels, compile=args.compile)
        check_labels(classifier, args.labels, labels)
        lines = None
        for path in filter(None, (args.json, args.json_lines)):
            path.parent.mkdir(parents=True, exist_ok=True)
        if args.json_lines:
            lines = stack.enter_context(args.json_lines.open('w'))
        failed = predict(classifier, videos, outputs, args, lines)
    if failed:
        raise SystemExit(
            f'{program_name()}: {len(failed)} of {len(videos)} videos failed: '
            + printable(', '.join(failed)))


def predict(classifier: VideoClassifier, videos: dict[str, Path],
            outputs: dict[str, Path], args: argparse.Namespace,
            lines: IO[str] | None) -> list[str]:
    """Classify all videos, and return the names of failed ones."""
    if args.windows is None:
        predictions = classifier.each(
            videos, batch_size=args.batch_size, fps=args.fps)
    else:
        predictions = chain.from_iterable(
            predict_windows(classifier, video, outputs.pop(video, None), args)
            for video in videos)
    results, failed = [], []
    number = 0
    with one_line_stop(lambda: f' after {number} predictions'):
        for number, prediction in enumerate(track(
                predictions, 'Predicting', total=len(videos),
                console=Console(stderr=True),
                disable=len(videos) == 1 or args.windows is not None), 1):
            error = prediction.error
            if error is None:
                caption = describe(prediction)
                if args.windows is None:
                    echo(prediction.video)
                echo(*caption, sep='\n')
                if prediction.video in outputs:
                    out = outputs[prediction.video]
                    try:
                        annotate_video(prediction.video, out, caption)
                        echo(f'written: {out}')
                    except (ValueError, OSError) as fault:
                        error = str(fault)
            result = prediction.as_dict()
            if error is not None:
                failed.append(prediction.video)
                result['error'] = error
                echo(f'{program_name()}: error: {error}', file=sys.stderr)
            if args.json:
                results.append(result)
            if lines is not None:
                write_json_line(lines, prediction)
    if args.json:
        args.json.write_text(json.dumps(results, indent=2) + '\n')
    return failed


@lru_cache(1)
def load_classifier(*model: Any) -> VideoClassifier:
    """Build the classifier of a process, unless it has it.

    Args:
        model: Model, checkpoint, device and labels.
    """
    # Silence mmengine's warnings about its own deprecated calls.
    MMLogger.get_current_instance().setLevel(logging.ERROR)
    return VideoClassifier(*model)


def make_predict(out: Path, *model: Any) -> Callable[[str, str], None]:
    """Return the function of a video and its name, for this process."""
    classifier = load_classifier(*model)

    def predict(source: str, name: str) -> None:
        result = classifier(local_path(source)).as_dict()
        text = json.dumps(dict(result, video=source))
        write_atomically(out / f'{name}.json', f'{text}\n', to_disk=False,
                         shared=True)

    return predict


def run_folder(args: argparse.Namespace) -> None:
    """Classify a long list of videos, with a JSON file for each one."""
    with one_line_errors():
        sources, config, checkpoint = split_model([*args.videos, *args.model])
        videos = plan_videos(sources)
        labels = tuple(read_labels(args.labels)) if args.labels else None
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
