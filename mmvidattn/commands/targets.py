# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Write the targets of each step of a feature stream from annotations.

    mmvidattn targets csv mine.csv data/mine \\
        --features data/mine/rgb

A segment covers the steps from floor(start * rate) to ceil(end * rate) - 1. A
step has the classes of all segments that cover it, or else class 0, the
background. The targets have as many steps as the features. Files with
different content are only overwritten with --force.
"""
import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from ..utils.exits import one_line_errors, program_name
from ..utils.printable import echo
from ._options import positive

if TYPE_CHECKING:
    from ..datasets.annotations.video_segment import VideoSegment


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add('format', help='format of the annotations: csv or json')
    add('annotations', type=Path, help='file of annotations')
    add('out', type=Path, help='folder to write to')
    add('--features', type=Path, required=True,
        help='folder of features, to get the number of steps')
    add('--rate', type=positive, default=4,
        help='steps per second (default: 4)')
    add('--classes', type=Path,
        help='file with one class name per line (default: all annotated '
        'classes, sorted)')
    add('--lenient', action='store_true',
        help='warn about invalid segments and skip them')
    add('--force', action='store_true',
        help='overwrite files with different content')


class Faults:
    """Handler of invalid segments that raises an error or warns."""

    def __init__(self, lenient: bool) -> None:
        self.lenient = lenient
        self.number = 0

    def __call__(self, message: str) -> None:
        if not self.lenient:
            raise ValueError(f'{message} (skip invalid segments with '
                             '--lenient)')
        self.number += 1
        echo(f'{program_name()}: warning: {message}', file=sys.stderr)


def read(args: argparse.Namespace, fault: Faults) -> 'list[VideoSegment]':
    """Read the segments of the annotations."""
    from ..datasets.annotations.formats import activitynet
    from ..datasets.annotations.segment_csv import read_segment_csv
    from ..datasets.annotations.video_segment import checked

    path = args.annotations
    if not path.exists():
        raise ValueError(f'{path} does not exist')
    if args.format == 'csv':
        segments = read_segment_csv(path, fault=fault)
    elif args.format == 'json':
        segments = checked(activitynet.read(path).segments, fault=fault)
    else:
        raise ValueError(f'format must be csv or json, got {args.format}; for '
                         'published data sets, use mmvidattn prepare')
    if not segments and not fault.number:
        raise ValueError(f'{path} has no segments')
    return segments


def class_names(args: argparse.Namespace,
                segments: 'Sequence[VideoSegment]') -> list[str]:
    """Return the class names, background first."""
    from ..datasets.prepare.feature_targets import BACKGROUND
    from ..utils.text_files import read_lines

    if args.classes is not None:
        if not args.classes.is_file():
            raise ValueError(f'--classes: file {args.classes} does not exist')
        names = read_lines(args.classes)
    else:
        names = sorted({segment.labels.get('action', '')
                        for segment in segments})
        if '' in names:
            raise ValueError(f'{args.annotations} has segments without label')
    # The background is always class 0.
    names = [BACKGROUND, *(
        name for name in names if name not in ('', BACKGROUND))]
    path = args.out / 'classes.txt'
    if args.classes is None and path.is_file():
        existing = read_lines(path)
        if existing != names and not args.force:
            # Otherwise, class numbers would differ between the splits.
            raise ValueError(
                f'{path} has {len(existing)} classes from an earlier run, '
                f'which differ from the {len(names)} classes of the '
                f'annotations: use --classes {path} to keep them, or remove '
                'the file')
    return names


@one_line_errors()
def run(args: argparse.Namespace) -> None:
    from ..datasets.prepare import feature_targets as targets
    from ..datasets.prepare.files import Output

    fault = Faults(args.lenient)
    lengths = targets.feature_lengths([args.features])
    # Features of day/one.mp4 are in day_one.npy.
    segments = [one if one.video in lengths else one._replace(
        video=targets.stream_name(one.video)) for one in read(args, fault)]
    videos = targets.with_features(segments, lengths, args.features, fault)
    classes = class_names(args, segments)
    segments = targets.known_classes(segments, classes, fault)
    subsets: dict[str, list[str]] = {}
    subset_of = {segment.video: segment.subset
                 for segment in reversed(segments)}
    for video in sorted(videos):
        if video in subset_of:
            subsets.setdefault(subset_of[video], []).append(video)
    echo(targets.write_targets(
        Output(args.out, args.force), segments, lengths,
        targets.named_targets(classes), args.rate, lists=subsets,
        classes=classes,
        background=[video for video in lengths if video not in subset_of]))
