# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Tune the thresholds of events on annotated videos.

    mmvidattn stream VIDEO [VIDEO ...] CONFIG CHECKPOINT --scores SCORES
    mmvidattn tune-thresholds SCORES annotations.csv --out thresholds.json
    mmvidattn stream CAMERA CONFIG CHECKPOINT --thresholds thresholds.json

Each class gets the scores that start and end an event, a smoothing of its
scores, and a least duration. Use videos that the model was not trained on.
"""
import argparse
import math
from pathlib import Path

from ..utils.exits import one_line_errors
from ..utils.printable import count, echo
from ._options import add_reading


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add('scores', type=Path, help='folder of mmvidattn stream --scores')
    add('annotations', type=Path, help='annotated events of these videos, in '
        'any format of mmvidattn annotations')
    add('--out', type=Path, default=Path('thresholds.json'), metavar='FILE',
        help='file to write (default: %(default)s)')
    add('--objective', default='f1@50',
        help='f1@50, f1@25 or f1@10, the F1 at an overlap of 50, 25 or 10 '
        '%%; or recall, the highest one with at most --false-alarms per hour '
        '(default: %(default)s)')
    add('--false-alarms', type=float, metavar='X', help='false alarms per '
        'hour that each class may have, for --objective recall')
    add('--videos', type=Path, metavar='FOLDER',
        help='folder of the videos, to find them by other names')
    add_reading(parser)


def run(args: argparse.Namespace) -> None:
    from ..datasets.annotations.formats import read_annotations
    from ..evaluation.events import tune_thresholds
    from ..online.frame_scores import read_frame_scores
    from .score import renamed

    with one_line_errors():
        scored = read_frame_scores(args.scores)
        found = read_annotations(args.annotations, videos=args.videos,
                                 fps=args.fps, columns=args.columns,
                                 tiers=args.tiers)
        for remark in found.remarks:
            echo(f'note: {remark}')
        tuned = tune_thresholds(
            scored.videos, renamed(found.segments, scored.videos)[0],
            scored.classes, scored.ignore, args.objective, args.false_alarms)
        tuned.write(args.out)
    before = tuned.about['value_of_defaults']
    for name, rules in tuned.classes.items():
        value = tuned.values[name]
        echo(f'{name}: on {rules["on"]:g}, off {rules["off"]:g}, smoothing '
             f'{rules["smoothing"]:g} s, min duration '
             f'{rules["min_duration"]:g} s; '
             + ('no annotated events, so these are the defaults'
                if math.isnan(value) else f'{args.objective} {value:.3f}'))
    before = 'undefined' if before is None else f'{before:.3f}'
    echo(f'{args.objective} of all classes: {tuned.value:.3f}, with the '
         f'default thresholds {before} '
         f'({count(tuned.about["videos"], "video")}, '
         f'{count(tuned.about["segments"], "event")})')
    if tuned.warning:
        echo(f'note: {tuned.warning}')
    echo(f'written: {args.out}')
