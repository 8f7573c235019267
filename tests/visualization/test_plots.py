# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Images of scores and events. A class has the same color everywhere."""
import re
from pathlib import Path

import cv2
import numpy as np
import pytest

import mmvidattn
from mmvidattn.visualization import event_plots, report_images, write_sheet
from mmvidattn.visualization.event_plots import (
    draw_delays,
    draw_precision_recall,
    draw_reliability,
    draw_timelines,
)
from mmvidattn.visualization.score_curves import (
    choose_classes,
    draw_score_curves,
    draw_score_rows,
)
from mmvidattn.visualization.style import COLORS, class_color

CLASSES = ['jump', 'run', 'swim', 'walk']
NAMES = ['background', *CLASSES]
TIMES = (np.arange(40) + 1) / 4


def scores_of(T, K=4, high=()):
    scores = np.full((T, K), 0.01)
    for i in high:
        scores[T // 4:T // 2, i] = 0.9
    return scores


def test_classes_with_the_highest_peaks_are_drawn():
    scores = scores_of(20, 13, high=range(3, 13))
    assert choose_classes(scores) == [3, 4, 5, 6, 7, 8, 9, 10]
    assert choose_classes(scores_of(8, 3, high=[1, 2]), ignore=(0, 2)) == [1]
    # Classes with low scores are left out, unless all scores are low.
    assert choose_classes(scores_of(20, high=[2])) == [2]
    assert len(choose_classes(scores_of(20))) == 3


def test_events_and_gaps_are_drawn(tmp_path):
    def draw(shown=np.ones(40, bool), **kwargs):
        path = tmp_path / 'new/plot.png'
        draw_score_curves(path, TIMES[shown], scores[shown], NAMES[:4], 4,
                          **kwargs)
        return cv2.imread(str(path)).astype(int)

    scores = np.full((40, 4), .5)
    plain = draw()
    height, width = plain.shape[:2]
    drawn = draw(events=[dict(index=2, start=2.5, end=5.)])
    rows, columns = np.nonzero(np.abs(drawn - plain).sum(-1) > 0)
    # In the second of three rows, from 2.5 to 5 s of 0 to 10 s.
    assert height / 4 < rows.min() and rows.max() < height * 3 / 4
    assert np.ptp(columns) / width == pytest.approx(0.25, abs=0.02)
    assert np.ptp(rows) < 12
    # The curve has a gap where steps are missing.
    change = np.abs(plain - draw((TIMES < 4) | (TIMES > 6))).sum(-1)
    columns = np.nonzero(change > 60)[1]
    assert np.ptp(columns) / width == pytest.approx(0.22, abs=0.05)
    with pytest.raises(ValueError, match='before its first step'):
        draw(np.zeros(40, bool))


def test_models_have_a_dot_per_seed_and_a_line_at_the_mean():
    figure = draw_score_rows(
        {'softmax': [60., 70., 95.], 'linear, $r=0.5$': [80.], 'new': []},
        {'chance': 12.5}, 'top-1 accuracy (%)')
    axes, = figure.axes
    lines = [(line.get_marker(), [*map(float, line.get_xdata())],
              {*map(float, line.get_ydata())}) for line in axes.lines]
    # The first model is at the top, the model without scores at the bottom.
    assert lines == [
        ('o', [], set()), ('o', [80.], {1.}), ('|', [80.], {1.}),
        ('o', [60., 70., 95.], {2.}), ('|', [75.], {2.}),
        ('None', [12.5, 12.5], {0., 1.})]
    assert [label.get_text() for label in axes.get_yticklabels()] == [
        'new', 'linear, $r=0.5$', 'softmax']
    assert axes.get_xlabel() == 'top-1 accuracy (%)'
    assert axes.texts[0].get_text() == 'chance'
    # The name of a model is not parsed as a formula.
    assert not any(label.get_parse_math() for label in axes.get_yticklabels())


def test_images_of_a_report_have_the_numbers(monkeypatch):
    drawn = []
    for module in event_plots, report_images:
        monkeypatch.setattr(module, 'save_figure',
                            lambda figure, path: drawn.append(figure.axes))
    draw_timelines('x', dict(v=([(1, 9, 'swim')], [(2, 5, 'swim')])), CLASSES)
    draw_precision_recall('x', dict(run=(
        np.array([.5, 1]), np.array([.8, .4]), .6)), 'all', CLASSES)
    draw_delays('x', np.array([1., 2., 2., 9.]), 3)
    nan = np.nan
    draw_reliability('x', np.array([4, 0, 2]), np.array([.1, nan, .9]),
                     np.array([.2, nan, .6]), 'all')
    report_images.draw_training_curves('x', [
        dict(epoch=1, loss=9., lr=.3, top1_acc=.1),
        dict(epoch=1, loss=2., lr=.2, top1_acc=.5),
        dict(epoch=2, loss=1., lr=.1, top1_acc=.7)],
        [dict(step=2, acc=.6)], .25, 'acc', 'top-1 accuracy')
    (rows, ), (curve, ), (delays, ), (upper, lower), training = drawn
    true, predicted = (bar.get_paths()[0].get_extents().intervalx.tolist()
                       for bar in rows.collections)
    assert (true, predicted) == ([1, 9], [2, 5])
    assert curve.lines[0].get_xydata().tolist() == [
        [0, .8], [.5, .8], [1, .4]]
    assert sum(bar.get_height() for bar in delays.patches) == 4
    assert delays.lines[0].get_xdata()[0] == 2
    assert delays.get_title() == '4 detected actions, 3 missed'
    assert upper.lines[1].get_xydata().tolist() == [[.1, .2], [.9, .6]]
    assert [bar.get_height() for bar in lower.patches] == [4, 0, 2]
    # The last values of each epoch, of training, validation and chance.
    assert [[line.get_xydata().tolist() for line in axis.lines]
            for axis in training] == [
        [[[1, 2], [2, 1]]],
        [[[1, .5], [2, .7]], [[2, .6]], [[0, .25], [1, .25]]],
        [[[1, .2], [2, .1]]]]


def shows(path, color):
    """Return True if an image has many pixels of a color."""
    rgb = [*bytes.fromhex(color[1:])]
    pixels = cv2.imread(str(path))[..., ::-1].astype(int)
    return (np.abs(pixels - rgb).max(-1) < 8).sum() > 20


def test_colors_do_not_depend_on_the_other_classes(tmp_path):
    """Only the third action occurs."""
    path = tmp_path / 'x.png'
    truth = [(1, 9, 'swim')]
    curve = np.array([0., .5, 1.])
    for draw, is_dark in (
            (lambda: draw_timelines(path, dict(v=(truth, truth)), CLASSES),
             False),
            (lambda: draw_precision_recall(
                path, dict(swim=(curve, 1 - curve, .5)), 'all', CLASSES),
             False),
            (lambda: draw_score_curves(
                path, TIMES, scores_of(40, 5, high=[3]), NAMES, 4), False),
            (lambda: write_sheet(path, np.zeros((1, 8, 8, 3), np.uint8), [
                'a video', ('swim swim swim', 2)]), True)):
        draw()
        assert [k for k in range(4) if shows(path, class_color(k, is_dark))
                ] == [2]


def test_page_has_the_same_colors():
    page = Path(mmvidattn.__file__).with_name('live') / 'page.html'
    found = re.findall(r'--c(\d): light-dark\((#\w{6}), (#\w{6})\)',
                       page.read_text('utf-8'))
    assert found == [(str(k), *both) for k, both in enumerate(COLORS)]
