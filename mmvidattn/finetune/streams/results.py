# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Scores, thresholds, metrics and model of a detector."""
import json
import math
import shlex
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ...apis.bundle import save_bundle
from ...apis.labels import read_labels
from ...apis.models import load_config
from ...datasets.annotations.custom.segment_csv import write_segment_csv
from ...datasets.annotations.video_segment import VideoSegment
from ...evaluation.events import (
    SegmentF1,
    detect_events,
    label_events,
    score_events,
    tune_thresholds,
)
from ...online.event_thresholds import OFF, ON
from ...online.frame_scores import FrameScores, ScoredVideos
from ...utils.files import write_atomically
from ...utils.lines import read_lines
from ...utils.printable import echo
from ...visualization.event_plots import draw_timelines
from ...visualization.training_curves import draw_training_curves
from ..report import percent, read_logs
from ..training import BUNDLE, run_test, save_best
from .config import FEATURE_RATE, METRIC
from .plan import read_events
from .prepare import stream_name

THRESHOLDS = 'thresholds.json'
OVERLAP = .5


def score_videos(out: Path, split: str
                 ) -> tuple[dict[str, FrameScores], dict[str, float]]:
    """Score the videos of a split with ``best.pth``, like a stream.

    Args:
        out: Work directory.
        split: ``'val'`` or ``'test'``.

    Returns:
        Scores of each video, and the metrics of frames.
    """
    names = read_lines(out / f'data/{split}_videos.txt')
    by_pixels = is_pixels(out)
    if by_pixels:
        files = dict(ann_file=f'{split}.csv',
                     video_list=str(out / f'data/{split}_videos.txt'))
    else:
        files = dict(ann_file=f'{split}_features.txt', windows='stream')
        names = {stream_name(name): name for name in names}
    runner, samples, metrics = run_test(out, split, **files)
    scores = {sample.video_name: sample.pred_action.float().cpu().numpy()
              for sample in samples}
    if by_pixels:
        loaded = runner.test_dataloader.dataset
        rates = dict(zip(loaded.videos, loaded.rates))
        return {name: FrameScores(rates[name], each)
                for name, each in scores.items()}, metrics
    return {names[name]: FrameScores(FEATURE_RATE, each)
            for name, each in scores.items()}, metrics


def write_results(out: Path) -> None:
    """Write the weights, the thresholds, the metrics and the model."""
    best = save_best(out)
    cfg = load_config(out / 'config.py')
    classes = read_labels(out / 'data/classes.txt')
    metric = METRIC['pixels' if is_pixels(out) else 'features']
    draw_training_curves(
        out / 'curves.png', *read_logs(out / 'run', metric), metric=metric,
        title='mAP of frames')
    events = dict(cfg.online.events)
    if cfg.get('val_dataloader') is not None:
        scores, frames = _score(out, 'val', classes)
        tuned = tune_thresholds(scores, read_events(out, 'val'), classes)
        tuned.write(out / THRESHOLDS)
        split = 'val'
        if (out / 'data/test.csv').is_file():
            split = 'test'
            scores, frames = _score(out, split, classes)
        truth = read_events(out, split)
        detected = detect_events(scores, classes, thresholds=tuned.classes)
        write_segment_csv(detected, out / 'predictions.csv')
        draw_timelines(out / 'timelines.png', {
            video: (_spans(truth, video), _spans(detected, video))
            for video in scores}, classes[1:])
        metrics = dict(
            checkpoint=best.name, split=split, videos=len(scores),
            frames=frames, tuned=measure(detected, truth, scores, classes),
            untuned=measure(detect_events(scores, classes), truth, scores,
                            classes))
        text = json.dumps(metrics, indent=1, ensure_ascii=False)
        write_atomically(out / 'metrics.json', f'{text}\n'.encode())
        echo(format_metrics(metrics))
        events = dict(thresholds=tuned.classes)
    if is_pixels(out):
        save_bundle(out / BUNDLE, out / 'config.py', out / 'best.pth',
                    classes, events, replace=True)


def _score(out: Path, split: str, classes: Sequence[str]
           ) -> tuple[dict[str, FrameScores], dict[str, float]]:
    """Score the videos of a split, and keep the scores."""
    scores, frames = score_videos(out, split)
    folder = out / f'scores/{split}'
    shutil.rmtree(folder, ignore_errors=True)
    ScoredVideos(classes, {0}, scores).write(folder)
    return scores, frames


def _spans(segments: Sequence[VideoSegment], video: str
           ) -> list[tuple[float, float, str]]:
    """Return start, end and class of a video's segments."""
    return [(one.start, one.end, one.labels['action']) for one in segments
            if one.video == video]


def is_pixels(out: Path) -> bool:
    """Return True if the model of a run reads pixels."""
    backbone = load_config(out / 'config.py').model.backbone
    return backbone.type == 'OnlineVideoEncoder'


def measure(detected: Sequence[VideoSegment], truth: Sequence[VideoSegment],
            scores: Mapping[str, FrameScores], classes: Sequence[str]
            ) -> dict[str, Any]:
    """Compute metrics of detected events; undefined ones are None.

    Args:
        detected: Detected events with scores.
        truth: Annotated events.
        scores: Scores of the videos.
        classes: Class names, the background first.

    Returns:
        Values by name, their 95 % ``intervals`` over videos, and F1@50 of the
        ``classes``.
    """
    found = score_events(
        detected, truth, {name: len(each.scores) / each.rate
                          for name, each in scores.items()},
        frame_scores=scores, classes=classes)
    f1 = SegmentF1(label_events(detected, truth, list(scores)), (OVERLAP, ))
    by_class = dict(zip(f1.classes, f1.by_class()[:, 0]))
    labels = [one.labels['action'] for one in truth]
    return {name: _number(one.value) for name, one in found.items()} | dict(
        intervals={name: [_number(one.low), _number(one.high)]
                   for name, one in found.items()},
        classes=[dict(name=name, events=labels.count(name),
                      f1=_number(value)) for name, value in by_class.items()])


def _number(value: float) -> float | None:
    return None if math.isnan(value) else round(float(value), 4)


def format_metrics(metrics: dict[str, Any]) -> str:
    """Format the content of ``metrics.json`` as a table."""
    tuned, untuned = metrics['tuned'], metrics['untuned']
    width = max(len('class'), *(
        len(one['name']) for one in tuned['classes']))
    before = {one['name']: one['f1'] for one in untuned['classes']}
    rows = [(one['name'], one['events'], one['f1'], before.get(one['name']))
            for one in tuned['classes']]
    rows.append(('all', sum(one['events'] for one in tuned['classes']),
                 tuned['F1@50'], untuned['F1@50']))
    lines = [f'{"class":{width}}  events  F1@50  F1@50 untuned']
    lines += [f'{name:{width}}  {number:6}  {percent(value):>5}  '
              f'{percent(other):>13}' for name, number, value, other in rows]
    mean = next(value for name, value in metrics['frames'].items()
                if '/mAP' in name)
    lines.append(
        f'{metrics["split"]}: {metrics["videos"]} videos, mAP of frames '
        f'{percent(mean)} %, recall {percent(tuned["recall"])} %, '
        f'{tuned["false_alarms_per_hour"]:.1f} false alarms per hour '
        f'(untuned: {ON} and {OFF})')
    return '\n'.join(lines)


def describe_use(out: Path) -> str:
    """Return the commands that use the model."""
    config, run = (shlex.quote(str(out / name)) for name in (
        'config.py', 'run'))
    if is_pixels(out):
        model = shlex.quote(str(out / BUNDLE))
    else:
        model = f'{config} {shlex.quote(str(out / "best.pth"))}'
        thresholds = out / THRESHOLDS
        if thresholds.is_file():
            model += f' --thresholds {shlex.quote(str(thresholds))}'
    report = ''
    if (out / 'predictions.csv').is_file():
        split = json.loads((out / 'metrics.json').read_text('utf-8'))['split']
        detected, truth, scores, folder = (
            shlex.quote(str(path)) for path in (
                out / 'predictions.csv', out / f'data/{split}.csv',
                out / f'scores/{split}', out / 'report'))
        report = f'''Write a report with more metrics and plots:
    mmvidattn score {detected} {truth} --scores {scores} --report {folder}
'''
    return f'''Detect events in a video, or live from camera 0, on a page:
    mmvidattn stream VIDEO {model} --events events.jsonl
    mmvidattn stream 0 {model} --serve
{report}\
Continue training after a change of the config, such as more epochs; then
repeat `mmvidattn finetune` with the same options to tune the thresholds and
compute the metrics:
    mmvidattn train {config} --resume --work-dir {run}'''
