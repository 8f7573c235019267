# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""A class has its own color wherever it is shown."""
import re
from pathlib import Path

import cv2
import numpy as np
import pytest

import mmvidattn
from mmvidattn.visualization import write_sheet
from mmvidattn.visualization.event_plots import (
    draw_precision_recall,
    draw_timelines,
)
from mmvidattn.visualization.score_curves import draw_score_curves
from mmvidattn.visualization.style import COLORS, class_color

CLASSES = ['jump', 'run', 'swim', 'walk']


def shows(path, color):
    """Return True if an image has many pixels of a color."""
    rgb = [*bytes.fromhex(color[1:])]
    pixels = cv2.imread(str(path))[..., ::-1].astype(int)
    return (np.abs(pixels - rgb).max(-1) < 8).sum() > 20


def test_plots_and_captions_do_not_depend_on_the_other_classes(tmp_path):
    """Only the third action occurs."""
    path = tmp_path / 'x.png'
    truth = [(1, 9, 'swim')]
    scores = np.full((40, 5), .01)
    scores[10:20, 3] = .9
    curve = np.array([0., .5, 1.])
    for draw, is_dark in (
            (lambda: draw_timelines(path, dict(v=(truth, truth)), CLASSES),
             False),
            (lambda: draw_precision_recall(
                path, dict(swim=(curve, 1 - curve, .5)), 'all', CLASSES),
             False),
            (lambda: draw_score_curves(
                path, np.arange(40) / 4, scores, ['background', *CLASSES], 4),
             False),
            (lambda: write_sheet(path, np.zeros((1, 8, 8, 3), np.uint8), [
                'a video', ('swim swim swim', 2)]), True)):
        draw()
        assert [k for k in range(4) if shows(path, class_color(k, is_dark))
                ] == [2]


@pytest.mark.parametrize('is_dark', [False, True])
def test_page_has_the_same_colors(is_dark):
    page = Path(mmvidattn.__file__).with_name('live') / 'page.html'
    found = dict(re.findall(
        r'--c(\d): light-dark\((#\w{6}), #\w{6}\)' if not is_dark else
        r'--c(\d): light-dark\(#\w{6}, (#\w{6})\)', page.read_text('utf-8')))
    assert found == {str(k): both[is_dark] for k, both in enumerate(COLORS)}
