# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Measure how well predicted events agree with annotations.

    mmvidattn score predictions.csv annotations.csv
    mmvidattn score predictions.csv annotations.json --videos FOLDER \\
        --scores SCORES --report REPORT

Both files may have any format of `mmvidattn annotations`; --columns is for the
file of annotations. Names of videos may
differ in their folders and suffixes. The table has 95 % intervals over videos.
docs/event_metrics.md explains which number answers which question.
"""
import argparse
import json
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..utils.exits import one_line_errors
from ..utils.printable import count, echo, first_few, printable
from ._options import add_reading, at_least

if TYPE_CHECKING:
    from ..datasets.annotations.formats import Annotations
    from ..datasets.annotations.video_segment import VideoSegment
    from ..evaluation.events import EventScores, Interval, LabeledEvents

# Meaning of each value.
MEANINGS = {
    'mAP@0.5': 'mean average precision at an overlap of 0.5',
    'mAP@0.3:0.7': "mean of overlaps 0.3, 0.4, ..., 0.7 (THUMOS'14)",
    'mAP@0.5:0.95': 'mean of overlaps 0.5, 0.55, ..., 0.95 (ActivityNet)',
    'F1@10': 'F1 at an overlap of 10 %', 'F1@25': 'at 25 %',
    'F1@50': 'at 50 %', 'edit': 'similarity of the order of events',
    'start_mAP@1s': 'starts found within 1 s', 'start_mAP@5s': 'within 5 s',
    'start_mAP@10s': 'within 10 s', 'start_mAP': 'mean of 1 to 10 s',
    'recall': 'share of actions that any event meets',
    'false_alarms_per_hour': 'events that meet no action',
    'delay_median': 'seconds from the start of an action to its event',
    'delay_p90': '9 of 10 delays are at most this',
    'ECE': 'mean distance of scores from frequencies',
    'Brier': 'mean squared error of scores'}
IOU = .5


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add('predictions', type=Path, help='file of predicted events')
    add('annotations', type=Path, help='file of annotated events')
    add('--videos', type=Path, metavar='FOLDER', help='folder of the '
        'evaluated videos, for their lengths. Videos that the annotations do '
        'not list count as videos without events, unless --subset is given, '
        'or --scores lacks them (default: the lengths in the annotations, or '
        'else the last ends)')
    add_reading(parser)
    add('--subset', help='evaluate only the videos of this subset of the '
        'annotations, such as test')
    add('--scores', type=Path, metavar='FOLDER', help='scores of steps from '
        'mmvidattn stream --scores, to evaluate their calibration')
    add('--protocol', default='activitynet', help='evaluation code that mAP '
        'follows: activitynet or thumos14 (default: activitynet)')
    add('--draws', type=at_least(0), default=1000, metavar='N',
        help='bootstrap draws for the intervals (default: 1000)')
    add('--report', type=Path, metavar='FOLDER',
        help='write the table, the values as JSON, and an image of the '
        'events of each video')


def read(args: argparse.Namespace, scored: Mapping[str, Any] | None
         ) -> 'tuple[Annotations, Annotations]':
    """Read predictions and annotations, with equal names of videos."""
    from ..datasets.annotations.formats import read_annotations
    from ..datasets.annotations.formats.base import video_subsets
    from ..datasets.annotations.labeled_videos import similar_names

    options = dict(videos=args.videos, fps=args.fps)
    predicted = read_annotations(args.predictions, **options)
    true = read_annotations(args.annotations, columns=args.columns,
                            tiers=args.tiers, **options)
    for remark in dict.fromkeys([*true.remarks, *similar_names('class', {
            str(one.labels.get('action'))
            for one in predicted.segments + true.segments})]):
        echo(f'note: {remark}')
    predicted.segments, others = renamed(predicted.segments, true.videos)
    if others and len(others) == len(
            {one.video for one in predicted.segments}):
        raise ValueError(
            f'{args.predictions} and {args.annotations} have no video in '
            f'common: {others[0]}, but {next(iter(true.videos), "none")}')
    if args.subset is not None:
        # Videos without events belong to a subset, too.
        subset_of = video_subsets(true)
        subsets = sorted({*subset_of.values()})
        wanted = args.subset.casefold()
        if wanted not in map(str.casefold, subsets):
            raise ValueError('--subset must be one of '
                             f'{", ".join(subsets) or "none"}, the subsets in '
                             f'{args.annotations}, got {args.subset}')
        true.videos = {name: info for name, info in true.videos.items()
                       if subset_of[name].casefold() == wanted}
        true.segments, predicted.segments = (
            [one for one in each.segments if one.video in true.videos]
            for each in (true, predicted))
    else:
        note_missing(predicted, true)
        if others:
            echo(f'note: {len(others)} of the predicted videos have no '
                 f'annotations, such as {others[0]}; all their events count '
                 'as false')
    if not true.segments and not predicted.segments:
        raise ValueError(f'{args.annotations} has no events')
    if args.videos is not None and args.subset is None:
        add_other_videos(true, args.videos, scored)
    return predicted, true


def note_missing(predicted: 'Annotations', true: 'Annotations') -> None:
    """Name the videos that have events, but no predictions."""
    from ..datasets.annotations.formats.base import subset_of

    seen = {one.video for one in predicted.segments}
    events = {video: segments for video, segments in true.by_video().items()
              if segments}
    missing = [video for video in events if video not in seen]
    if missing:
        subsets = {subset_of(true.videos[video], segments)
                   for video, segments in events.items()}
        echo(f'note: no predictions for {len(missing)} of '
             f'{count(events, "video")} with events, which count as missed: '
             f'{first_few(missing)}'
             + '; --subset evaluates one subset' * (len(subsets) > 1))


def add_other_videos(true: 'Annotations', path: Path,
                     scored: Mapping[str, Any] | None) -> None:
    """Add videos of a folder, or those with scores, that are not listed."""
    from ..datasets.annotations.formats import VideoFolder
    from ..datasets.annotations.formats.videos import VideoNames

    folder, added, unreadable = VideoFolder(path), [], []
    evaluated = None if scored is None else VideoNames(scored)
    for name in folder.names:
        if name not in true.videos and (
                evaluated is None or evaluated.find(name)):
            try:
                true.videos[name] = folder.info(name)
                added.append(name)
            except ValueError:
                unreadable.append(name)
    if added:
        echo(f'note: {count(added, "video")} of {path} without annotations, '
             f'counted as videos without events: {first_few(added)}')
    if unreadable:
        echo(f'note: {count(unreadable, "unreadable video")} of {path} '
             f'without annotations left out: {first_few(unreadable)}')


def renamed(segments: 'Sequence[VideoSegment]', videos: Mapping[str, Any]
            ) -> 'tuple[list[VideoSegment], list[str]]':
    """Use the names of annotated videos. Also return the other videos."""
    from ..datasets.annotations.formats.videos import VideoNames

    names = VideoNames(videos)
    segments = [one._replace(video=names.find(one.video) or one.video)
                for one in segments]
    return segments, sorted({one.video for one in segments} - {*videos})


def lengths(predicted: 'Annotations', true: 'Annotations') -> dict[str, float]:
    """Return the length of each video in seconds."""
    found, guessed = {}, []
    segments = predicted.segments + true.segments
    for name in {*true.videos, *(one.video for one in segments)}:
        info = true.videos.get(name) or predicted.videos.get(name)
        if info is None or info.duration is None:
            guessed.append(name)
            # The end of an instant is NaN.
            found[name] = max((max(one.start, one.end) for one in segments
                               if one.video == name), default=0.)
        else:
            found[name] = info.duration
    if guessed:
        echo(f'note: the length of {len(guessed)} of {len(found)} videos is '
             'unknown, so false alarms per hour use their last event; pass '
             '--videos')
    return found


def class_rows(scores: 'EventScores') -> list[dict[str, Any]]:
    """Return the values of each class."""
    ap, f1, alarms = map(scores.metrics.get,
                         ('SegmentAP', 'SegmentF1', 'Alarms'))
    events, rows = scores.events, []
    for k, name in enumerate(events.classes):
        row: dict[str, Any] = {
            'class': name, 'annotated': int((events.true.label == k).sum()),
            'predicted': int((events.predicted.label == k).sum())}
        if ap is not None:
            row[f'AP@{IOU:g}'] = float(
                ap.average_precision()[ap.classes.index(name)][
                    ap.thresholds.index(IOU)]
                if name in ap.classes else math.nan)
        if f1 is not None:
            row['F1@50'] = float(f1.by_class()[k, f1.thresholds.index(.5)])
        if alarms is not None:
            row['missed'] = int((alarms.true - alarms.found)[:, k].sum())
            row['false alarms'] = int(alarms.false[:, k].sum())
        rows.append(row)
    return rows


def table(rows: Sequence[Sequence[str]]) -> str:
    """Format rows as Markdown; the first one is the header."""
    widths = [max(map(len, column)) for column in zip(*rows)]
    lines = [' | '.join(cell.ljust(width) for cell, width in zip(row, widths))
             for row in (rows[0], ['-' * width for width in widths],
                         *rows[1:])]
    return ''.join(f'| {line} |\n' for line in lines)


def number(value: float) -> str:
    if isinstance(value, int):
        return str(value)
    return '-' if math.isnan(value) else f'{value:.3f}'


def format_report(scores: 'EventScores', values: 'Mapping[str, Interval]',
                  rows: Sequence[Mapping[str, Any]], hours: float) -> str:
    events = scores.events
    text = (f'{count(events.videos, "video")} ({hours:.2f} h), '
            f'{count(events.true, "annotated event")} and '
            f'{count(events.predicted, "predicted event")}\n\n')
    text += table([('metric', 'value', '95 % interval', 'meaning')] + [
        (name, number(value), f'{number(low)} to {number(high)}'
         if not math.isnan(low) else '-', MEANINGS[name])
        for name, (value, low, high) in values.items() if name in MEANINGS])
    for name, reason in scores.left_out.items():
        text += f'\n{name} is left out: {reason}\n'
    header = list(rows[0])
    text += '\n' + table([header] + [
        [printable(str(row[key])) if key == 'class' else number(row[key])
         for key in header] for row in rows])
    return text


def draw(path: Path, events: 'LabeledEvents', actions: Sequence[str]) -> None:
    """Draw the events of each video; ``actions`` determines the colors."""
    from ..visualization.score_curves import draw_timelines

    def listed(each, video):
        return [(start, start if math.isnan(end) else end,
                 events.classes[label]) for start, end, label in zip(
                     *(getattr(each, name)[each.video == video]
                       for name in ('start', 'end', 'label')))]

    draw_timelines(path, {
        name: (listed(events.true, v), listed(events.predicted, v))
        for v, name in enumerate(events.videos)}, actions)


def compute(args: argparse.Namespace
            ) -> 'tuple[EventScores, dict[str, float], list[str]]':
    """Return the metrics, each evaluated video's length, and the actions."""
    from ..datasets.annotations.formats.videos import VideoNames
    from ..evaluation.events import EventScores
    from ..online.frame_scores import read_frame_scores

    scored = args.scores and read_frame_scores(args.scores)
    predicted, true = read(args, scored and scored.videos)
    durations = lengths(predicted, true)
    options, actions = {}, []
    if scored is not None:
        names = VideoNames(durations)
        options = dict(
            frame_scores={names.find(name) or name: each
                          for name, each in scored.videos.items()},
            classes=scored.classes, ignore=scored.ignore)
        if options['frame_scores'].keys().isdisjoint(durations):
            raise ValueError(f'{args.scores} has no scores of the annotated '
                             f'videos: {", ".join([*scored.videos][:3])}')
        actions = [name for k, name in enumerate(scored.classes)
                   if k not in scored.ignore]
    scores = EventScores(predicted.segments, true.segments, durations,
                         protocol=args.protocol, **options)
    return scores, durations, [*dict.fromkeys(
        [*actions, *scores.events.classes])]


def run(args: argparse.Namespace) -> None:
    from ..evaluation.events import bootstrap
    from ..utils.files import write_atomically

    with one_line_errors():
        scores, durations, actions = compute(args)
        if args.report is not None:
            args.report.mkdir(parents=True, exist_ok=True)
    values = bootstrap(scores.values, len(durations), args.draws)
    rows, hours = class_rows(scores), sum(durations.values()) / 3600
    text = format_report(scores, values, rows, hours)
    echo(text, end='')
    if args.report is None:
        return

    def plain(values: Mapping[str, Any]) -> dict[str, Any]:
        # NaN differs from itself.
        return {key: None if x != x else x for key, x in values.items()}

    write_atomically(args.report / 'scores.json', json.dumps(dict(
        values={key: plain(each._asdict()) for key, each in values.items()},
        classes=[*map(plain, rows)],
        left_out=scores.left_out, hours=hours, videos=len(durations),
        protocol=args.protocol), indent=1, ensure_ascii=False) + '\n')
    draw(args.report / 'timelines.png', scores.events, actions)
    write_atomically(args.report / 'report.md',
                     text + '\n![timelines.png](timelines.png)\n')
    echo(f'\nreport: {args.report / "report.md"}')
