# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Images of scores and events. A class has the same color everywhere."""
import re
from pathlib import Path

import cv2
import numpy as np
import pytest
from matplotlib.colors import to_hex

import mmvidattn
from mmvidattn.visualization import report_images, score_curves, write_sheet
from mmvidattn.visualization.score_curves import (
    choose_classes,
    draw_score_curves,
    draw_score_rows,
    draw_timelines,
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


@pytest.fixture
def drawn(monkeypatch):
    """List of the axes of each figure, instead of files."""
    axes = []
    for module in report_images, score_curves:
        monkeypatch.setattr(module, 'save_figure',
                            lambda figure, path: axes.append(figure.axes))
    return axes


def test_events_and_gaps_are_drawn(drawn):
    def draw(shown=np.ones(40, bool), **kwargs):
        draw_score_curves('x', TIMES[shown], scores[shown], NAMES[:4], 4,
                          **kwargs)
        return drawn.pop()

    scores = np.full((40, 4), .5)
    axes = draw(events=[dict(index=2, start=2.5, end=5.)])
    assert [axis.get_title('left') for axis in axes] == CLASSES[:3]
    assert [len(axis.lines) for axis in axes] == [1, 2, 1]
    bar = axes[1].lines[1]
    assert [*bar.get_xdata()] == [2.5, 5.] and bar.get_ydata()[0] == -.05
    assert axes[1].get_xlim() == (0, 10) and axes[1].get_ylim()[0] < -.05
    # The curve has a gap where steps are missing.
    times, heights = draw((TIMES < 4) | (TIMES > 6))[0].lines[0].get_data()
    gap, = np.flatnonzero(np.isnan(times))
    assert (times[gap - 1], times[gap + 1]) == (3.75, 6.25)
    assert np.nanmean(heights) == .5
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


def test_images_of_a_report_have_the_numbers(drawn):
    draw_timelines('x', dict(v=([(1, 9, 'swim')], [(2, 5, 'swim')])), CLASSES)
    report_images.draw_training_curves('x', [
        dict(epoch=1, loss=9., lr=.3, top1_acc=.1),
        dict(epoch=1, loss=2., lr=.2, top1_acc=.5),
        dict(epoch=2, loss=1., lr=.1, top1_acc=.7)],
        [dict(step=2, acc=.6)], .25, 'acc', 'top-1 accuracy')
    (rows, ), training = drawn
    true, predicted = (bar.get_paths()[0].get_extents().intervalx.tolist()
                       for bar in rows.collections)
    assert (true, predicted) == ([1, 9], [2, 5])
    # The last values of each epoch, of training, validation and chance.
    assert [[line.get_xydata().tolist() for line in axis.lines]
            for axis in training] == [
        [[[1, 2], [2, 1]]],
        [[[1, .5], [2, .7]], [[2, .6]], [[0, .25], [1, .25]]],
        [[[1, .2], [2, .1]]]]


def test_colors_do_not_depend_on_the_other_classes(drawn, tmp_path):
    """Only the third action occurs."""
    truth = [(1, 9, 'swim')]
    draw_timelines('x', dict(v=(truth, truth)), CLASSES)
    draw_score_curves('x', TIMES, scores_of(40, 5, high=[3]), NAMES, 4)
    for (axis, ) in drawn:
        colors = [line.get_color() for line in axis.lines] + [
            bar.get_facecolor()[0, :3] for bar in axis.collections]
        assert {*map(to_hex, colors)} == {class_color(2)}
    write_sheet(tmp_path / 'x.png', np.zeros((1, 8, 8, 3), np.uint8),
                ['a video', ('swim swim swim', 2)])
    image = cv2.imread(str(tmp_path / 'x.png'))[..., ::-1].astype(int)
    shown = [k for k in range(4) if (np.abs(image - [*bytes.fromhex(
        class_color(k, is_dark=True)[1:])]).max(-1) < 8).sum() > 20]
    assert shown == [2]


def test_page_has_the_same_colors():
    page = Path(mmvidattn.__file__).with_name('live') / 'page.html'
    found = re.findall(r'--c(\d): light-dark\((#\w{6}), (#\w{6})\)',
                       page.read_text('utf-8'))
    assert found == [(str(k), *both) for k, both in enumerate(COLORS)]
