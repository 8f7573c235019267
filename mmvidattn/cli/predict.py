# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Predict what happens in videos.

    mmvidattn predict VIDEO [VIDEO ...] CONFIG CHECKPOINT
"""
import argparse
import json
import logging
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from mmengine.device import get_device
from mmengine.logging import MMLogger
from rich.console import Console
from rich.progress import track

from ..apis import Prediction, get_model, predict_video, read_labels
from ..apis.runner import one_line_errors, program_name
from ..datasets.own_videos import VIDEO_SUFFIXES
from ..visualization import OUTPUTS, annotate_video


def parse_args(argv: Sequence[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        'videos', nargs='+', type=Path, metavar='VIDEO',
        help='video file, or a folder of them')
    parser.add_argument('config', help='config file, or its name')
    parser.add_argument('checkpoint', help='checkpoint file')
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
        '--compile', action='store_true',
        help='compile the model first: slower to start, then faster; for many '
        'videos')
    parser.add_argument(
        '--device', default=get_device(),
        help='where to compute (default here: %(default)s)')
    return parser.parse_args(argv)


def find_videos(inputs: list[Path]) -> dict[Path, Path]:
    """The videos, and what to call each in an output folder."""
    videos = {}
    for path in inputs:
        if not path.is_dir():
            videos[path] = Path(path.name)
            continue
        found = [p for p in sorted(path.rglob('*'))
                 if p.suffix.lower() in VIDEO_SUFFIXES]
        if not found:
            raise ValueError(f'no videos in the folder {path}; their names '
                             f'end with one of {", ".join(VIDEO_SUFFIXES)}')
        videos.update((p, p.relative_to(path)) for p in found)
    return videos


def plan_outputs(videos: dict[Path, Path], out: Path | None
                 ) -> dict[Path, Path]:
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
    taken = {video.resolve() for video in videos}
    count = Counter(outputs.values())
    for video, path in outputs.items():
        if path.resolve() in taken or count[path] > 1:
            raise ValueError(f'--out {out}: {path}, for {video}, would '
                             'overwrite another video')
    return outputs


def describe(predictions: list[Prediction]) -> list[str]:
    return [f'{p.score:6.3f}  {p.label}' for p in predictions]


def main(argv: Sequence[str] | None = None) -> None:
    args = parse_args(argv)
    # mmengine warns of its own deprecated calls.
    MMLogger.get_current_instance().setLevel(logging.ERROR)
    with one_line_errors():
        videos = find_videos(args.videos)
        outputs = plan_outputs(videos, args.out)
        labels = read_labels(args.labels) if args.labels else None
        model = get_model(args.config, args.checkpoint, args.device,
                          compile=args.compile)
        if labels and len(labels) != model.cls_head.num_classes:
            raise ValueError(
                f'{args.labels} names {len(labels)} classes, and the model '
                f'has {model.cls_head.num_classes}')

    results, failed = [], []
    for video in track(
            videos, 'Predicting', console=Console(stderr=True),
            disable=len(videos) == 1):
        result = dict(video=str(video))
        results.append(result)
        try:
            predictions = predict_video(model, video, labels=labels)
            lines = describe(predictions)
            print(video, *lines, sep='\n')
            result['predictions'] = [p._asdict() for p in predictions]
            if video in outputs:
                annotate_video(video, outputs[video], lines)
                print(f'written: {outputs[video]}')
        except (ValueError, OSError) as error:
            failed.append(video)
            result['error'] = str(error)
            print(f'{program_name()}: error: {error}', file=sys.stderr)
    if args.json:
        args.json.parent.mkdir(parents=True, exist_ok=True)
        args.json.write_text(json.dumps(results, indent=2) + '\n')
    if failed:
        raise SystemExit(
            f'{program_name()}: {len(failed)} of {len(videos)} videos failed: '
            + ', '.join(map(str, failed)))
