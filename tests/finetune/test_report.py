# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
import json

import cv2
import numpy as np
import pytest
from sklearn.metrics import (
    balanced_accuracy_score,
    precision_recall_fscore_support,
)

from mmvidattn.finetune.report import (
    Answer,
    draw_confusion,
    format_metrics,
    metrics_of,
    read_logs,
    write_report,
)
from mmvidattn.visualization.clip_rows import draw_clip_rows
from mmvidattn.visualization.training_curves import draw_training_curves

CLASSES = ['a', 'b $x$ é', 'never']


def answers(pairs):
    return [Answer('v.mp4', None, *pair, 0.5) for pair in pairs]


def test_metrics_match_scikit_learn():
    rng = np.random.default_rng(0)
    truth, predicted = rng.integers(5, size=(2, 60))
    metrics, matrix = metrics_of(
        answers(zip(truth, predicted)), list('abcde'))
    expected = precision_recall_fscore_support(truth, predicted)
    for name, values in zip(('precision', 'recall', 'f1', 'videos'), expected):
        assert [one[name] for one in metrics['classes']] == pytest.approx(
            values.tolist()), name
    assert metrics['top1'] == (truth == predicted).mean()
    assert metrics['mean_class_accuracy'] == pytest.approx(
        balanced_accuracy_score(truth, predicted))
    # Rows are the truth.
    assert matrix[2, 3] == ((truth == 2) & (predicted == 3)).sum()


def test_class_without_videos_has_no_metrics():
    metrics, _ = metrics_of(answers([(0, 0), (0, 1), (1, 1)]), CLASSES)
    never = metrics['classes'][2]
    assert never == dict(name='never', videos=0, recall=None, precision=None,
                         f1=None)
    assert metrics['mean_class_accuracy'] == 0.75
    lines = format_metrics(metrics).splitlines()
    assert lines[1].split() == ['a', '2', '50.0', '100.0', '66.7']
    assert lines[3].split() == ['never', '0', '-', '-', '-']
    assert lines[4] == (
        'top-1 66.7 % of 3 videos, with 95 % confidence 20.8 to 93.9 %')
    assert lines[5] == 'chance 66.7 %, class mean 75.0 %'
    assert lines[6].startswith('This result is within the noise of chance')


@pytest.mark.parametrize('hits, total, advice', [
    # 4 classes: 25 % by chance.
    (4, 8, 'This result is within the noise of chance'),
    (6, 8, 'The interval is wide'), (380, 400, None)])
def test_gives_advice(hits, total, advice):
    pairs = [(i % 4, i % 4 if i < hits else (i + 1) % 4) for i in range(total)]
    metrics, _ = metrics_of(answers(pairs), list('abcd'))
    assert metrics['chance'] == 0.25
    low, high = metrics['interval']
    assert low < hits / total < high
    # The Wilson interval contains the shares p with |p - hits / total| equal
    # to 1.96 standard deviations of p.
    for p in low, high:
        assert abs(p - hits / total) == pytest.approx(
            1.96 * (p * (1 - p) / total)**0.5, rel=1e-3)
    advised = format_metrics(metrics).splitlines()[7:]
    assert advised[0].startswith(advice) if advice else not advised


def test_most_confident_mistakes_come_first(motion_dir, tmp_path):
    results = [
        Answer(str(motion_dir / f'val/{i % 8:06d}.mp4'),
               (0., 0.5) if i % 2 else None, 0, int(i > 1), (i * 7 % 13) / 13)
        for i in range(13)]
    write_report(tmp_path, results, CLASSES, motion_dir, checkpoint='x')
    metrics = json.loads((tmp_path / 'metrics.json').read_text('utf-8'))
    scores = [one['score'] for one in metrics['mistakes']]
    assert len(scores) == 10 and scores == sorted(scores, reverse=True)
    assert scores == sorted((a.score for a in results[2:]), reverse=True)[:10]
    assert metrics['checkpoint'] == 'x' and metrics['top1'] == 2 / 13
    ten = cv2.imread(str(tmp_path / 'mistakes.png'))
    write_report(tmp_path, results[:2], CLASSES, motion_dir)
    none = cv2.imread(str(tmp_path / 'mistakes.png'))
    assert ten.std() > 10 and len(ten) > 5 * len(none)


def test_class_names_are_not_escaped_in_json(motion_dir, tmp_path):
    results = [Answer(str(motion_dir / 'val/000000.mp4'), None, 0, 1, 1.)]
    write_report(tmp_path, results, ['Größe', 'Fuß'], motion_dir)
    text = (tmp_path / 'metrics.json').read_text('utf-8')
    assert '"Größe"' in text and '"Fuß"' in text


def test_draws_confusion_of_many_classes(tmp_path):
    _, matrix = metrics_of(answers([(0, 0), (39, 1)]), ['$'] * 40)
    draw_confusion(tmp_path / 'c.png', matrix, ['$'] * 40)
    assert cv2.imread(str(tmp_path / 'c.png')).std() > 1


def test_reads_logs_of_resumed_run(tmp_path):
    # The first run was killed, and the second one repeats step 2.
    for name, logs in (
            ('1', [dict(loss=3, epoch=1, step=1), dict(loss=9, epoch=1,
                                                       step=2)]),
            ('2', [dict(loss=2, epoch=1, step=2),
                   {'acc/top1': 0.5, 'step': 1}])):
        path = tmp_path / name / 'vis_data/scalars.json'
        path.parent.mkdir(parents=True)
        path.write_text('\n'.join(map(json.dumps, logs)) + '\n{"lo')
    training, validation = read_logs(tmp_path)
    assert [log['loss'] for log in training] == [3, 2]
    assert validation == [{'acc/top1': 0.5, 'step': 1}]


def test_curves_show_the_loss(tmp_path):
    pictures = []
    for loss in (1., 1.), (1., 0.1):
        draw_training_curves(
            tmp_path / 'c.png',
            [dict(epoch=i, loss=x, lr=0.1, top1_acc=0.5)
             for i, x in enumerate(loss, 1)],
            [{'acc/top1': 0.5, 'step': 1}])
        pictures.append(cv2.imread(str(tmp_path / 'c.png')).astype(float))
    third = pictures[0].shape[1] // 3
    differ = np.abs(pictures[0] - pictures[1]).sum(axis=(0, 2))
    assert differ[:third].sum() > 0 and not differ[third + 20:].any()


def test_curves_show_chance(tmp_path):
    pictures = []
    for chance in None, 0.25:
        draw_training_curves(
            tmp_path / 'c.png',
            [dict(epoch=i, loss=1., lr=0.1, top1_acc=0.5) for i in (1, 2)],
            [{'acc/top1': 0.5, 'step': 1}], chance=chance)
        pictures.append(cv2.imread(str(tmp_path / 'c.png')).astype(float))
    third = pictures[0].shape[1] // 3
    differ = np.abs(pictures[0] - pictures[1]).sum(axis=(0, 2))
    assert differ[third:2 * third].sum() > 0 and not differ[:third].any()


def test_clip_rows_may_differ_in_length(tmp_path):
    frames = np.full((3, 8, 12, 3), 255, np.uint8)
    frames[..., 1:] = 0
    draw_clip_rows(tmp_path / 'rows.png', [frames, frames[:1]],
                   ['$one', 'two$ é'], 'above')
    picture = cv2.imread(str(tmp_path / 'rows.png'))
    # Four red frames, BGR.
    red = (picture[..., 2] > 250) & (picture[..., :2] < 5).all(-1)
    count, _ = cv2.connectedComponents(red.astype(np.uint8))
    assert count - 1 == 4
