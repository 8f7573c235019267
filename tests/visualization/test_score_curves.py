# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
import cv2
import numpy as np
import pytest

from mmvidattn.visualization.score_curves import (
    choose_classes,
    draw_score_curves,
)

NAMES = ['background', *'abcdefghijkl']


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


def draw(tmp_path, T=40, **kwargs):
    path = tmp_path / 'new/plot.png'
    draw_score_curves(path, (np.arange(T) + 1) / 4,
                      scores_of(T, high=[1, 2, 3]),
                      NAMES[:4], 4, **kwargs)
    return cv2.imread(str(path)).astype(int)


def test_events_are_drawn(tmp_path):
    plain = draw(tmp_path)
    drawn = draw(tmp_path, events=[dict(index=2, start=2.5, end=5.)])
    rows, columns = np.nonzero(np.abs(drawn - plain).sum(-1) > 0)
    # In the second of three rows, from 2.5 to 5 s of 0 to 10 s.
    height, width = plain.shape[:2]
    assert height / 4 < rows.min() and rows.max() < height * 3 / 4
    assert np.ptp(columns) / width == pytest.approx(0.25, abs=0.02)
    assert np.ptp(rows) < 12


def test_curve_has_gap_at_missing_steps(tmp_path):
    scores, times = scores_of(40, high=[]), (np.arange(40) + 1) / 4
    scores[:, 1] = 0.5
    keep = (times < 4) | (times > 6)
    images = []
    for mask in np.ones(40, bool), keep:
        draw_score_curves(tmp_path / 'x.png', times[mask], scores[mask],
                          NAMES[:4], 4)
        images.append(cv2.imread(str(tmp_path / 'x.png')).astype(int))
    _, columns = np.nonzero(np.abs(images[0] - images[1]).sum(-1) > 60)
    span = (columns.max() - columns.min()) / images[0].shape[1]
    assert span == pytest.approx(0.22, abs=0.05)


def test_rejects_no_steps(tmp_path):
    with pytest.raises(ValueError, match='before its first step'):
        draw(tmp_path, T=0)
