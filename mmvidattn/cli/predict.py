# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Predict what happens in videos.

    mmvidattn predict VIDEO [VIDEO ...] CONFIG CHECKPOINT
    mmvidattn predict LONG_VIDEO CONFIG CHECKPOINT --windows 10 --stride 5
"""
import argparse
import json
import logging
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from itertools import chain
from pathlib import Path
from typing import IO

from mmengine.logging import MMLogger
from rich.console import Console
from rich.progress import track

from ..apis import VideoClassifier, VideoPrediction, read_labels
from ..apis.predict import write_json_line
from ..apis.runner import one_line_errors, program_name
from ..apis.video_clips import find_videos, is_folder_of_videos
from ..utils.printable import echo, printable
from ..visualization import OUTPUTS, annotate_video
from ._shared import add_config, add_device, parser_of


def parse_args(argv: Sequence[str] | None = None) -> argparse.Namespace:
    parser = parser_of(__doc__)
    parser.add_argument(
        'videos', nargs='+', metavar='VIDEO',
        help='video file, its URL, a folder of videos or of the frames of one;'
        ' for windows also the number of a camera, or the URL of a stream')
    add_config(parser)
    parser.add_argument(
        '--labels', help='file with the name of a class on each line (default:'
        " the checkpoint's, else the config's)")
    parser.add_argument(
        '--out', type=Path, metavar='FILE_OR_FOLDER',
        help='write the video with its predictions to this .mp4, some frames '
        'of it to this .png or .jpg, or a .mp4 for each video to this folder')
    parser.add_argument(
        '--json', type=Path, help='write the predictions to this file')
    parser.add_argument(
        '--json-lines', type=Path, metavar='FILE',
        help='write each prediction to this file as soon as it is there, a '
        'line each')
    parser.add_argument(
        '--windows', type=float, metavar='SECONDS',
        help='predict each window of a long video, of so many seconds')
    parser.add_argument(
        '--stride', type=float, metavar='SECONDS',
        help='from the start of a window to that of the next (default: its '
        'length)')
    parser.add_argument(
        '--fps', type=float,
        help='frames a second of folders of frames and of live sources')
    parser.add_argument(
        '--batch-size', type=int, default=1,
        help='videos or windows to compute at a time (default: %(default)s)')
    parser.add_argument(
        '--compile', action='store_true',
        help='compile the model first: slower to start, then faster; for many '
        'videos')
    add_device(parser)
    args = parser.parse_args(argv)
    if args.windows is None and args.stride is not None:
        parser.error('--stride is for --windows')
    if args.windows is not None and (args.out or args.json):
        parser.error('--windows goes with --json-lines, not with --out or '
                     '--json, which hold all that was predicted')
    return args


def name_videos(inputs: list[str]) -> dict[str, Path]:
    """The videos, and what to call each in an output folder."""
    videos = {}
    for source in inputs:
        if is_folder_of_videos(source):
            videos.update((str(path), path.relative_to(source))
                          for path in find_videos(source))
        else:
            videos[source] = Path(Path(source).name)
    return videos


def plan_outputs(videos: dict[str, Path], out: Path | None
                 ) -> dict[str, Path]:
    """Choose the file to write for each video."""
    if out is None:
        return {}
    if out.suffix.lower() in OUTPUTS:
        if len(videos) > 1:
            raise ValueError(f'--out {out} is one file, and there are '
                             f'{len(videos)} videos: give a folder')
        outputs = {video: out for video in videos}
    else:
        outputs = {video: out / name.with_suffix('.mp4')
                   for video, name in videos.items()}
    unreadable = [video for video in videos
                  if Path(video).is_dir() or '://' in video]
    if unreadable:
        raise ValueError(f'--out draws on video files, and {unreadable[0]} is '
                         'none')
    taken = {Path(video).resolve() for video in videos}
    count = Counter(outputs.values())
    for video, path in outputs.items():
        if path.resolve() in taken or count[path] > 1:
            raise ValueError(f'--out {out}: {path}, for {video}, would '
                             'overwrite another video')
    return outputs


def describe(prediction: VideoPrediction) -> list[str]:
    return [f'{p.score:6.3f}  {p.label}' for p in prediction.predictions]


def predict_windows(classifier: VideoClassifier, video: str,
                    args: argparse.Namespace) -> Iterator[VideoPrediction]:
    """Each window of a video; the last one may say why it breaks off."""
    try:
        for found in classifier.windows(
                video, args.windows, args.stride, batch_size=args.batch_size,
                fps=args.fps):
            echo(f'{video}, {found.start:.2f} to {found.end:.2f} s')
            yield found
    except (ValueError, OSError) as error:
        yield VideoPrediction(video, error=str(error))


def main(argv: Sequence[str] | None = None) -> None:
    args = parse_args(argv)
    # mmengine warns of its own deprecated calls.
    MMLogger.get_current_instance().setLevel(logging.ERROR)
    with one_line_errors(), ExitStack() as stack:
        videos = name_videos(args.videos)
        outputs = plan_outputs(videos, args.out)
        labels = read_labels(args.labels) if args.labels else None
        classifier = VideoClassifier(
            args.config, args.checkpoint, args.device, labels,
            compile=args.compile)
        num_classes = classifier.model.cls_head.num_classes
        if labels and len(labels) != num_classes:
            raise ValueError(
                f'{args.labels} names {len(labels)} classes, and the model '
                f'has {num_classes}')
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
    """Predict all, and return the names of those that failed."""
    if args.windows is None:
        found = classifier.each(
            videos, batch_size=args.batch_size, fps=args.fps)
    else:
        found = chain.from_iterable(
            predict_windows(classifier, video, args) for video in videos)
    results, failed = [], []
    for prediction in track(
            found, 'Predicting', total=len(videos),
            console=Console(stderr=True),
            disable=len(videos) == 1 or args.windows is not None):
        error = prediction.error
        if error is None:
            said = describe(prediction)
            if args.windows is None:
                echo(prediction.video)
            echo(*said, sep='\n')
            if prediction.video in outputs:
                out = outputs[prediction.video]
                try:
                    annotate_video(prediction.video, out, said)
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
