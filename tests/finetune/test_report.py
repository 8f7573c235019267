# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
import json

import cv2
import numpy as np
import pytest

from mmvidattn.datasets.annotations.video_segment import VideoSegment
from mmvidattn.finetune import report
from mmvidattn.online.frame_scores import FrameScores
from mmvidattn.visualization.report_images import draw_clip_rows

CLASSES = ['a', 'b $x$ é', 'never']


@pytest.fixture(scope='module')
def sklearn():
    """Imported late, because this takes more than a second."""
    return pytest.importorskip('sklearn.metrics')


def answers(pairs):
    return [report.Answer('v.mp4', None, *pair, 0.5) for pair in pairs]


def test_metrics_match_scikit_learn(sklearn):
    rng = np.random.default_rng(0)
    truth, predicted = rng.integers(5, size=(2, 60))
    # The last class has no videos.
    metrics, matrix = report.metrics_of(
        answers(zip(truth, predicted)), 'abcdef')
    lines = report.format_metrics(metrics).splitlines()
    expected = sklearn.precision_recall_fscore_support(truth, predicted)
    for name, values in zip(('precision', 'recall', 'f1', 'videos'), expected):
        assert [one[name] for one in metrics['classes'][:5]] == pytest.approx(
            values.tolist()), name
    precision, recall, f1, videos = expected
    for line, number, *shares in zip(lines[1:6], videos, recall, precision,
                                     f1):
        assert line.split()[1:] == [
            f'{number}', *(f'{100 * share:.1f}' for share in shares)]
    assert lines[6].split() == ['f', '0', '-', '-', '-']
    assert metrics['classes'][5] == dict(
        name='f', videos=0, recall=None, precision=None, f1=None)
    assert metrics['top1'] == (truth == predicted).mean()
    assert metrics['mean_class_accuracy'] == pytest.approx(
        sklearn.balanced_accuracy_score(truth, predicted))
    # Rows are the truth.
    assert matrix[2, 3] == ((truth == 2) & (predicted == 3)).sum()


@pytest.mark.parametrize('hits, total, advice', [
    # 4 classes: 25 % by chance.
    (4, 8, 'This result is within the noise of chance'),
    (6, 8, 'The interval is wide'), (380, 400, '')])
def test_gives_advice(hits, total, advice):
    metrics, _ = report.metrics_of(answers(
        (i % 4, (i + (i >= hits)) % 4) for i in range(total)), 'abcd')
    assert metrics['chance'] == 0.25 and metrics['top1'] == hits / total
    # The Wilson interval contains the shares p with |p - hits / total| equal
    # to 1.96 standard deviations of p.
    for p, sign in zip(metrics['interval'], (-1, 1)):
        assert p - hits / total == pytest.approx(
            sign * 1.96 * (p * (1 - p) / total)**0.5, rel=1e-3)
    lines = report.format_metrics(metrics).splitlines()
    assert all(f'{100 * p:.1f}' in lines[5] for p in metrics['interval'])
    advised = '\n'.join(lines[7:])
    assert advised.startswith(advice) and bool(advised) == bool(advice)


def test_most_confident_mistakes_come_first(motion_dir, tmp_path):
    results = [
        report.Answer(str(motion_dir / f'val/{i % 8:06d}.mp4'),
               (0., 0.5) if i % 2 else None, 0, int(i > 1), (i * 7 % 13) / 13)
        for i in range(13)]
    report.write_report(tmp_path, results, CLASSES, motion_dir, 'x')
    metrics = json.loads((tmp_path / 'metrics.json').read_text('utf-8'))
    assert metrics['classes'][1]['name'] == CLASSES[1]
    scores = [one['score'] for one in metrics['mistakes']]
    assert len(scores) == 10 and scores == sorted(scores, reverse=True)
    assert scores == sorted((a.score for a in results[2:]), reverse=True)[:10]
    assert metrics['checkpoint'] == 'x' and metrics['top1'] == 2 / 13
    ten = cv2.imread(str(tmp_path / 'mistakes.png'))
    report.write_report(tmp_path, results[:2], CLASSES, motion_dir, 'x')
    none = cv2.imread(str(tmp_path / 'mistakes.png'))
    assert ten.std() > 10 and len(ten) > 5 * len(none)


def test_reads_logs_of_resumed_run(tmp_path):
    # The first run was killed, and the second one repeats step 2.
    for name, logs in (
            ('1', [dict(loss=3, step=1), dict(loss=9, step=2)]),
            ('2', [dict(loss=2, step=2), {'acc/top1': 0.5, 'step': 1}])):
        path = tmp_path / name / 'vis_data/scalars.json'
        path.parent.mkdir(parents=True)
        path.write_text('\n'.join(map(json.dumps, logs)) + '\n{"lo')
    training, validation = report.read_logs(tmp_path)
    assert [log['loss'] for log in training] == [3, 2]
    assert validation == [{'acc/top1': 0.5, 'step': 1}]


def test_clip_rows_may_differ_in_length(tmp_path):
    red = np.full((3, 8, 12, 3), (255, 0, 0), np.uint8)
    draw_clip_rows(tmp_path / 'rows.png', [red, red[:1]], ['$one', 'two$ é'],
                   'above')
    picture = cv2.imread(str(tmp_path / 'rows.png'))
    count, _ = cv2.connectedComponents(cv2.inRange(
        picture, (0, 0, 250), (5, 5, 255)))
    assert count - 1 == 4


@pytest.mark.parametrize('seed', range(2))
def test_thresholds_have_the_best_f1(sklearn, seed):
    rng = np.random.default_rng(seed)
    # Few values, so that there are ties.
    scores = rng.integers(0, 8, (15, 3)) / 10
    labels = rng.random((15, 3)) < [.2, .6, 0]
    labels[0, :2] = True

    def f1(k, threshold):
        return sklearn.f1_score(labels[:, k], scores[:, k] >= threshold)

    thresholds = report.tune_label_thresholds(scores, labels)
    assert thresholds[2] == 0.5
    for k in 0, 1:
        assert f1(k, thresholds[k]) == pytest.approx(max(
            f1(k, threshold) for threshold in np.arange(9) / 10 - .05))


def test_label_metrics_match_scikit_learn(sklearn):
    rng = np.random.default_rng(0)
    scores, labels = rng.random((30, 4)), rng.random((30, 4)) < .4
    labels[:, 3] = False
    thresholds = np.array([.2, .5, .7, .5])
    metrics = report.measure_labels(scores, labels, thresholds, 'abcd')
    aps = [sklearn.average_precision_score(labels[:, k], scores[:, k])
           for k in range(3)]
    assert [one['ap'] for one in metrics['classes']] == pytest.approx(
        [*aps, None])
    assert metrics['mean_average_precision'] == pytest.approx(np.mean(aps))
    predicted = scores >= thresholds
    assert metrics['f1'] == pytest.approx(
        sklearn.f1_score(labels, predicted, average='micro'))
    assert [one['f1'] for one in metrics['classes']][:3] == pytest.approx(
        sklearn.f1_score(labels, predicted, average=None, zero_division=0)[:3])
    assert [one['threshold'] for one in metrics['classes']] == [.2, .5, .7, .5]
    lines = report.format_labels(metrics).splitlines()
    assert len(lines) == 6 and lines[4].split()[:3] == ['d', '0', '-']


def test_measures_events():
    truth, found = ([VideoSegment(f'{start}', 'v', start, end, dict(
        action=label), '', score=.9) for start, end, label in rows]
        for rows in (((0, 10, 'a'), (20, 30, 'a'), (40, 50, 'b')),
                     ((1, 10, 'a'), (60, 70, 'a'))))
    scores = dict(v=FrameScores(2., np.zeros((200, 3), np.float32)))
    metrics = report.measure_events(
        found, truth, scores, ['background', 'a', 'b'])
    # One of two predictions and one of three events match.
    assert metrics['F1@50'] == pytest.approx(2 / 5)
    assert metrics['recall'] == pytest.approx(1 / 3, abs=1e-4)
    # A false alarm in 100 s.
    assert metrics['false_alarms_per_hour'] == pytest.approx(36)
    assert metrics['classes'] == [dict(name='a', events=2, f1=.5),
                                  dict(name='b', events=1, f1=0.)]
    text, poor = (report.format_events(dict(
        split='test', videos=1, frames={'online/mAP_stream': .5}, tuned=one))
        for one in (metrics, metrics | {'F1@50': .05}))
    assert text.splitlines()[-2].split() == ['all', '3', '40.0']
    assert 'test: 1 video, mAP of frames 50.0 % (chance 15.0 %)' in text
    assert 'recall 33.3 %, 36.0 false alarms per hour' in text
    assert 'almost nothing' in poor and 'almost nothing' not in text
