# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Metrics and images of a fine-tuned model."""
import json
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from matplotlib import pyplot
from mmaction.evaluation import ConfusionMatrix
from mmengine.runner import Runner
from scipy.stats import binomtest
from torch import Tensor

from ..apis.labels import probabilities, top_predictions
from ..datasets.annotations.video_segment import VideoSegment
from ..evaluation.events import SegmentF1, label_events, score_events
from ..evaluation.per_frame_map import average_precision
from ..online.frame_scores import FrameScores
from ..utils.files import write_atomically
from ..utils.frame_times import frame_times
from ..utils.modules import unwrap
from ..utils.printable import count, format_table
from ..utils.text_files import read_lines
from ..utils.video_reader import VideoReader
from ..visualization.report_images import draw_clip_rows, draw_training_curves
from .training import METRICS

MAX_MISTAKES = 10
# The metrics are called rough if the 95 % interval is wider.
ROUGH = 0.2
FRAMES = 5
MAX_CLASSES_WITH_VALUES = 30
UNTUNED = 0.5
# Overlap of a found event.
OVERLAP = .5
# F1 of a detector that has learned little.
POOR = .1


def draw_curves(out: Path, chance: float | None) -> None:
    """Draw loss, accuracy and learning rate of a run to ``curves.png``."""
    training, validation = read_logs(out / 'run')
    metric = next((name for name in METRICS
                   if any(name in log for log in validation)), 'acc/top1')
    draw_training_curves(
        out / 'curves.png', training,
        [log for log in validation if metric in log], chance, metric,
        METRICS[metric])


def read_logs(work_dir: Path) -> tuple[list[dict], list[dict]]:
    """Read the logs of training and validation of a run, which may be resumed.

    If a step was logged several times, the last log is returned.
    """
    training, validation = {}, {}
    for path in sorted(work_dir.glob('*/vis_data/scalars.json')):
        for line in read_lines(path):
            try:
                log = json.loads(line)
            except ValueError:
                # The last line of a killed run may be incomplete.
                continue
            logs = training if 'loss' in log else validation
            if 'step' in log:
                logs[log['step']] = log
    return tuple([logs[step] for step in sorted(logs)]
                 for logs in (training, validation))


def write_metrics(out: Path, metrics: Mapping[str, Any]) -> None:
    """Write ``metrics.json``."""
    text = json.dumps(metrics, indent=1, ensure_ascii=False)
    write_atomically(out / 'metrics.json', f'{text}\n'.encode())


def percent(value: float | None) -> str:
    """Format a share as a percentage; '-' for None."""
    return '-' if value is None else f'{100 * value:.1f}'


class Answer(NamedTuple):
    """Prediction of a test video.

    Attributes:
        filename: Path of the video.
        segment: First and last second; None for the whole video.
        truth: True class.
        predicted: Predicted class.
        score: Probability of the predicted class.
    """
    filename: str
    segment: tuple[float, float] | None
    truth: int
    predicted: int
    score: float


def read_answers(runner: Runner, samples: Sequence) -> list[Answer]:
    """Return the prediction of each sample of a test, in its order."""
    dataset, model = runner.test_dataloader.dataset, unwrap(runner.model)
    answers = []
    for i, sample in enumerate(samples):
        info = dataset.get_data_info(i)
        best, = top_predictions(
            probabilities(model, sample.pred_score), (), topk=1)
        segment = info.get('segment')
        answers.append(Answer(
            info['filename'], segment and tuple(segment[:2]),
            int(sample.gt_label), best.index, best.score))
    return answers


def write_report(out: Path, answers: Sequence[Answer],
                 classes: Sequence[str], root: Path, checkpoint: str) -> str:
    """Write the metrics and images, and return the metrics as a table."""
    metrics, matrix = metrics_of(answers, classes)
    draw_confusion(out / 'confusion.png', matrix, classes)
    shown = draw_mistakes(out / 'mistakes.png', answers, classes, root)
    write_metrics(out, dict(checkpoint=checkpoint, **metrics, mistakes=[
        dict(video=one.filename, segment=one.segment, score=one.score,
             predicted=classes[one.predicted], truth=classes[one.truth])
        for one in shown]))
    return format_metrics(metrics)


def metrics_of(answers: Sequence[Answer], classes: Sequence[str]
               ) -> tuple[dict[str, Any], Tensor]:
    """Compute accuracies, and recall, precision and F1 of each class.

    Returns:
        Metrics in [0, 1], None if undefined, and the confusion matrix,
        ``[truth, prediction]``. ``interval`` is the 95 % Wilson interval of
        ``top1``; ``chance`` is the accuracy of always predicting the most
        frequent class.
    """
    matrix = ConfusionMatrix.calculate(
        [answer.predicted for answer in answers],
        [answer.truth for answer in answers], len(classes))
    counts = zip(*(x.tolist() for x in (
        matrix.diag(), matrix.sum(1), matrix.sum(0))))

    def ratio(part: int, total: int) -> float | None:
        return part / total if total else None

    by_class = [
        dict(name=name, videos=truth, recall=ratio(hits, truth),
             precision=ratio(hits, predicted),
             f1=ratio(2 * hits, truth + predicted))
        for name, (hits, truth, predicted) in zip(classes, counts)]
    recalls = [one['recall'] for one in by_class if one['videos']]
    hits, total = int(matrix.diag().sum()), len(answers)
    return dict(
        videos=total,
        top1=ratio(hits, total),
        interval=tuple(binomtest(hits, total).proportion_ci(method='wilson')),
        chance=int(matrix.sum(1).max()) / total,
        mean_class_accuracy=ratio(sum(recalls), len(recalls)),
        classes=by_class), matrix


def format_metrics(metrics: dict[str, Any]) -> str:
    """Format the metrics as a table, followed by advice."""
    low, high = metrics['interval']
    lines = format_table([('class', 'videos', 'recall', 'precision', 'F1')] + [
        (one['name'], one['videos'], percent(one['recall']),
         percent(one['precision']), percent(one['f1']))
        for one in metrics['classes']]) + [
        f'top-1 {percent(metrics["top1"])} % of '
        f'{count(metrics["videos"], "video")}, '
        f'with 95 % confidence {percent(low)} to {percent(high)} %',
        f'chance {percent(metrics["chance"])} %, class mean '
        f'{percent(metrics["mean_class_accuracy"])} %']
    if low <= metrics['chance']:
        lines.append(
            'This result is within the noise of chance: do not rely on this '
            'model. Check the\nlabels in mistakes.png, start from other '
            'weights (configs/start_weights.md), train\nlonger (--minutes), '
            'add clips, or test on more videos.')
    elif high - low > ROUGH:
        lines.append('The interval is wide: add test videos before you '
                     'compare this model with another.')
    return '\n'.join(lines)


def draw_confusion(path: Path, matrix: Tensor,
                   classes: Sequence[str]) -> None:
    """Draw a confusion matrix, ``[truth, prediction]``, to a file."""
    # Escape dollar signs, which start a formula in matplotlib.
    names = [name.replace('$', r'\$') for name in classes]
    figure = ConfusionMatrix.plot(
        matrix, include_values=len(classes) <= MAX_CLASSES_WITH_VALUES,
        classes=names, show=False)
    figure.savefig(path, bbox_inches='tight')
    pyplot.close(figure)


def draw_mistakes(path: Path, answers: Sequence[Answer],
                  classes: Sequence[str], root: Path) -> list[Answer]:
    """Draw frames of the most confident mistakes, and return these."""
    mistakes = sorted((one for one in answers if one.predicted != one.truth),
                      key=lambda one: -one.score)
    shown = mistakes[:MAX_MISTAKES]
    titles = []
    for one in shown:
        name = Path(one.filename)
        name = name.relative_to(root) if name.is_relative_to(root) else name
        at = ' {:.1f} to {:.1f} s'.format(*one.segment) if one.segment else ''
        titles.append(f'{classes[one.predicted]} ({one.score:.2f}) instead of '
                      f'{classes[one.truth]}: {name}{at}')
    draw_clip_rows(
        path, [_frames(one) for one in shown], titles,
        f'{len(shown)} most confident of {count(mistakes, "mistake")} on '
        f'{count(answers, "video")}' if shown else
        f'no mistakes on {count(answers, "video")}')
    return shown


def _frames(answer: Answer) -> np.ndarray:
    """Read frames of a video or a segment, ``[T, H, W, 3]``."""
    reader = VideoReader(answer.filename)
    first, last = 0, len(reader) - 1
    if answer.segment:
        first, last = np.searchsorted(
            frame_times(reader), answer.segment).clip(0, last)
    at = np.linspace(first, last, min(FRAMES, len(reader))).astype(int)
    return reader.get_batch(at)


def read_label_scores(runner: Runner, samples: Sequence
                      ) -> tuple[np.ndarray, np.ndarray]:
    """Return scores and true labels (bool) of a test's samples, [N, K]."""
    model = unwrap(runner.model)
    return (np.array([probabilities(model, sample.pred_score).numpy()
                      for sample in samples]),
            np.array([sample.gt_label.cpu().numpy() > 0
                      for sample in samples]))


def tune_label_thresholds(scores: np.ndarray, labels: np.ndarray
                          ) -> np.ndarray:
    """Return the threshold of each class with the highest F1, [K].

    Thresholds lie midway between scores. If several are equally good, the
    middle one is taken. A class without positives gets 0.5. The arguments are
    those of :func:`measure_labels`.
    """
    found = np.full(scores.shape[1], UNTUNED)
    for k in np.flatnonzero(labels.any(axis=0)):
        values = np.unique(scores[:, k])
        middles = (np.append(0, values[:-1]) + values) / 2
        predicted = scores[:, k, None] >= middles
        hits = (predicted & labels[:, k, None]).sum(axis=0)
        f1 = 2 * hits / (predicted.sum(axis=0) + labels[:, k].sum())
        best = middles[np.isclose(f1, f1.max())]
        found[k] = best[len(best) // 2]
    return found


def measure_labels(scores: np.ndarray, labels: np.ndarray,
                   thresholds: np.ndarray, classes: Sequence[str]
                   ) -> dict[str, Any]:
    """Compute the mAP, and AP and F1 of each class; undefined ones are None.

    Args:
        scores: Probabilities, [N, K].
        labels: True labels, bool [N, K].
        thresholds: Result of :func:`tune_label_thresholds`, [K].
        classes: Names of the K classes.
    """
    def f1(predicted: np.ndarray, true: np.ndarray) -> float | None:
        number = int(predicted.sum() + true.sum())
        return 2 * int((predicted & true).sum()) / number if number else None

    by_class = [dict(
        name=name, videos=int(true.sum()),
        ap=float(average_precision(true, score)) if true.any() else None,
        threshold=round(float(threshold), 4), f1=f1(score >= threshold, true))
        for name, score, true, threshold in zip(
            classes, scores.T, labels.T, thresholds)]
    known = [one['ap'] for one in by_class if one['ap'] is not None]
    return dict(
        videos=len(scores),
        mean_average_precision=sum(known) / len(known) if known else None,
        f1=f1(scores >= thresholds, labels), classes=by_class)


def format_labels(metrics: dict[str, Any]) -> str:
    """Format the result of :func:`measure_labels` as a table."""
    return '\n'.join(format_table(
        [('class', 'videos', 'AP', 'threshold', 'F1')] + [
            (one['name'], one['videos'], percent(one['ap']),
             f'{one["threshold"]:.3f}', percent(one['f1']))
            for one in metrics['classes']]) + [
        f'mAP {percent(metrics["mean_average_precision"])} %, F1 of all '
        f'classes {percent(metrics["f1"])} %, '
        f'{count(metrics["videos"], "video")}'])


def measure_events(detected: Sequence[VideoSegment],
                   truth: Sequence[VideoSegment],
                   scores: Mapping[str, FrameScores], classes: Sequence[str]
                   ) -> dict[str, Any]:
    """Compute metrics of detected events; undefined ones are None.

    Args:
        detected: Detected events with scores.
        truth: Annotated events.
        scores: Scores of the videos.
        classes: Class names, the background first.

    Returns:
        Values by name, their 95 % ``intervals`` over videos, F1@50 of the
        ``classes``, and ``chance``, the mAP of frames with random scores: the
        mean share of the time that events of a class take.
    """
    lengths = {name: len(each.scores) / each.rate
               for name, each in scores.items()}
    found = score_events(detected, truth, lengths, frame_scores=scores,
                         classes=classes)
    f1 = SegmentF1(label_events(detected, truth, list(scores)), (OVERLAP, ))
    labels = [one.labels['action'] for one in truth]
    seconds = sum(lengths.values())
    taken = sum(one.end - one.start for one in truth)

    def number(value: float) -> float | None:
        return None if math.isnan(value) else round(float(value), 4)

    return {name: number(one.value) for name, one in found.items()} | dict(
        chance=number(taken / seconds / max(1, len({*labels}))),
        intervals={name: [number(one.low), number(one.high)]
                   for name, one in found.items()},
        classes=[dict(name=name, events=labels.count(name), f1=number(value))
                 for name, value in zip(f1.classes, f1.by_class()[:, 0])])


def format_events(metrics: dict[str, Any]) -> str:
    """Format the content of ``metrics.json`` as a table."""
    tuned = metrics['tuned']
    rows = [('class', f'{metrics["split"]} events', 'F1@50')] + [
        (one['name'], one['events'], percent(one['f1']))
        for one in tuned['classes']]
    rows.append(('all', sum(one['events'] for one in tuned['classes']),
                 percent(tuned['F1@50'])))
    mean = next(value for name, value in metrics['frames'].items()
                if '/mAP' in name)
    advice = ['This detector finds almost nothing: train longer (--minutes), '
              'or annotate more\nevents.'] * ((tuned['F1@50'] or 0) < POOR)
    return '\n'.join(format_table(rows) + [
        f'{metrics["split"]}: {count(metrics["videos"], "video")}, mAP of '
        f'frames {percent(mean)} % (chance {percent(tuned["chance"])} %), '
        f'recall {percent(tuned["recall"])} %, '
        f'{tuned["false_alarms_per_hour"]:.1f} false alarms per hour']
        + advice)
