# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Tune the thresholds of events on annotated videos."""
import argparse
import math

from ..apis.runner import one_line_errors
from ..datasets.annotations.formats import read_annotations
from ..datasets.annotations.video_names import VideoNames
from ..evaluation.events import tune_thresholds
from ..online.frame_scores import read_frame_scores
from ..utils.printable import echo


def run(args: argparse.Namespace) -> None:
    with one_line_errors():
        scored = read_frame_scores(args.scores)
        found = read_annotations(args.annotations, videos=args.videos,
                                 fps=args.fps, columns=args.columns)
        for remark in found.remarks:
            echo(f'note: {remark}')
        names = VideoNames(scored.videos)
        tuned = tune_thresholds(
            scored.videos,
            [one._replace(video=names.find(one.video) or one.video)
             for one in found.segments],
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
    echo(f'{args.objective} of all classes: {tuned.value:.3f}, with the '
         f'default thresholds '
         f'{"undefined" if before is None else f"{before:.3f}"} '
         f'({tuned.about["videos"]} videos, '
         f'{tuned.about["segments"]} events)')
    echo(args.out)
