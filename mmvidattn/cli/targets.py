# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Write the targets of each step of a feature stream from annotations.

    mmvidattn targets csv mine.csv data/mine \\
        --features data/mine/rgb

A step has the class of each segment that it overlaps: from floor(start * rate)
to ceil(end * rate), that last one excluded. A step without a class is of the
background, class 0. As many steps are written as the features have. Targets
of another run are not written over, see provenance.json in the output.
"""
import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from ..apis.runner import one_line_errors, program_name
from ..datasets.annotations.custom.segment_csv import read_segment_csv
from ..datasets.annotations.published.activitynet import read_activitynet
from ..datasets.annotations.published.rulstm import EK100_CLASSES, read_rulstm
from ..datasets.annotations.published.thumos14 import CLASSES as THUMOS14
from ..datasets.annotations.published.thumos14 import read_thumos14
from ..datasets.annotations.published.tvseries import CLASSES as TVSERIES
from ..datasets.annotations.published.tvseries import read_tvseries
from ..datasets.annotations.video_segment import VideoSegment
from ..datasets.prepare.feature_targets import (
    BACKGROUND,
    feature_lengths,
    known_classes,
    named_targets,
    numbered_targets,
    with_features,
    write_targets,
)
from ..datasets.prepare.output import Output
from ..utils.lines import read_lines
from ..utils.printable import echo
from ._shared import parser_of, positive

# In the order of released targets and checkpoints.
RELEASED = dict(thumos14=THUMOS14, tvseries=TVSERIES)
FORMATS = ('csv', 'json', 'thumos14', 'tvseries', 'ek100')


class Faults:
    """Report faulty segments: raise, or warn and go on."""

    def __init__(self, lenient: bool) -> None:
        self.lenient = lenient
        self.number = 0

    def __call__(self, message: str) -> None:
        if not self.lenient:
            raise ValueError(f'{message} (--lenient goes on without)')
        self.number += 1
        echo(f'{program_name()}: warning: {message}', file=sys.stderr)


def read(args: argparse.Namespace, fault: Faults) -> list[VideoSegment]:
    """The segments of the annotations."""
    if not args.annotations.exists():
        raise ValueError(f'there is no {args.annotations}')
    path = args.annotations
    if args.format == 'ek100':
        return read_rulstm(path, num_classes=EK100_CLASSES, fault=fault)
    if args.format == 'thumos14':
        return read_thumos14(path, args.split, fault=fault)
    if args.format == 'tvseries':
        return read_tvseries(path, args.split or 'all', fault=fault)
    readers = dict(csv=read_segment_csv, json=read_activitynet)
    return readers[args.format](path, fault=fault)


def run(args: argparse.Namespace) -> None:
    fault = Faults(args.lenient)
    lengths = feature_lengths([args.features])
    segments = read(args, fault)
    if not segments and not fault.number:
        raise ValueError(f'{args.annotations} has no segments')
    sources = [args.annotations, args.features]
    if args.classes is not None:
        if not args.classes.is_file():
            raise ValueError(f'--classes: there is no file {args.classes}')
        sources.append(args.classes)
    with Output(args.out, f'targets {args.format}',
                f'{args.annotations.name} {args.split}',
                dict(rate=args.rate, split=args.split), sources,
                args.force) as output:
        videos = with_features(segments, lengths, args.features, fault)
        if args.format == 'ek100':
            name = args.split or args.annotations.stem
            echo(write_targets(
                output, segments, lengths, numbered_targets(EK100_CLASSES),
                args.rate, lists={name: videos}))
            return
        classes = class_names(args, segments)
        segments = known_classes(segments, classes, fault)
        subsets: dict[str, list[str]] = {}
        subset_of = {one.video: one.subset for one in reversed(segments)}
        for video in sorted(videos):
            if video in subset_of:
                subsets.setdefault(subset_of[video], []).append(video)
        # Other splits of published sets have their features there as well.
        others = [] if args.format in ('thumos14', 'tvseries') else [
            video for video in lengths if video not in subset_of]
        echo(write_targets(
            output, segments, lengths, named_targets(classes), args.rate,
            lists=subsets, classes=classes, background=others))


def class_names(args: argparse.Namespace,
                segments: Sequence[VideoSegment]) -> list[str]:
    """The background, and the classes told, released, or that occur."""
    if args.classes is not None:
        names = read_lines(args.classes)
    elif args.format in RELEASED:
        names = RELEASED[args.format]
    else:
        names = sorted({one.labels.get('action', '') for one in segments})
        if '' in names:
            raise ValueError(f'{args.annotations} has segments without label')
    # Of the background there are no segments.
    names = [BACKGROUND] + [
        name for name in names if name and name != BACKGROUND
    ]
    path = args.out / 'classes.txt'
    if args.classes is None and path.is_file():
        found = read_lines(path)
        if found != names and not args.force:
            # Targets of two splits would not mean the same.
            raise ValueError(
                f'{path} has {len(found)} classes of an earlier run, and here '
                f'occur {len(names)}, not the same ones; say --classes {path} '
                'to keep these, or remove it')
    return names


def main(argv: Sequence[str] | None = None) -> None:
    parser = parser_of(__doc__)
    parser.add_argument('format', choices=FORMATS, help='of the annotations')
    parser.add_argument('annotations', type=Path,
                        help="file, or THUMOS'14's folder")
    parser.add_argument('out', type=Path, help='folder to write to')
    parser.add_argument('--features', type=Path, required=True,
                        help='folder of features, which tell the lengths')
    parser.add_argument('--rate', type=positive, default=4,
                        help='steps a second (default: 4)')
    parser.add_argument('--classes', type=Path,
                        help='names of the classes, one a line (default: '
                        'those of released targets, or those that occur, '
                        'sorted)')
    parser.add_argument('--split', default='',
                        help="val or test of THUMOS'14; name of the list of "
                        'videos for tvseries and ek100')
    parser.add_argument('--lenient', action='store_true',
                        help='warn of faulty segments and go on without them')
    parser.add_argument('--force', action='store_true',
                        help='write over files of other content')
    args = parser.parse_args(argv)
    with one_line_errors():
        run(args)
