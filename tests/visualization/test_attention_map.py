# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
import cv2
import numpy as np
import pytest

from mmvidattn.visualization.attention_map import (
    Overlay,
    draw_matrices,
    draw_overlays,
    frames_to_show,
)


def _overlay(weights, token=(0, 0, 0), side=64, title='ours'):
    weights = np.asarray(weights, np.float32)
    frames = np.zeros((len(weights), side, side, 3), np.uint8)
    return Overlay(title, frames, weights, token, (0., side, 0., side))


def test_larger_values_are_brighter(tmp_path):
    ramp = np.repeat(np.linspace(0, 1, 40)[:, None], 30, 1)
    draw_matrices(tmp_path / 'new/x.png', [ramp, ramp[::-1]], ['a', 'b'],
                  'above')
    image = cv2.imread(str(tmp_path / 'new/x.png'))
    height, width = image.shape[:2]
    assert width > 1.5 * height
    left, right = np.split(image.astype(int), [width // 2], axis=1)
    rows = slice(height // 4, 2 * height // 3)
    for half, up in ((left, 1), (right, -1)):
        column = half[rows, half.shape[1] // 2, 1]
        column = column[column < 240]
        assert (np.diff(column) * up >= -2).all()
        assert abs(column[-1] - column[0]) > 80


@pytest.mark.parametrize('matrix', [
    np.zeros((3, 5)), np.array([[-1., 2.]]), np.ones((1, 2000)) / 2000
], ids=['zeros', 'signs', 'long'])
def test_draws_degenerate_matrices(tmp_path, matrix):
    draw_matrices(tmp_path / 'x.png', [matrix], ['a'])
    assert cv2.imread(str(tmp_path / 'x.png')).std() > 1


@pytest.mark.parametrize('frames, with_keys, t, shown', [
    (4, [2], 2, [2]),
    (4, [1, 2, 3], 0, [0, 1, 2, 3]),
    (16, range(16), 15, [0, 2, 4, 6, 9, 11, 13, 15]),
    (16, range(16), 8, [0, 2, 4, 6, 8, 11, 13, 15])])
def test_chosen_frames_include_the_query(frames, with_keys, t, shown):
    weights = np.full((frames, 2, 2), np.nan)
    weights[list(with_keys)] = 1
    assert frames_to_show(_overlay(weights, (t, 0, 0))) == shown


def test_weight_is_bright_and_query_has_a_box(tmp_path):
    weights = np.zeros((1, 4, 4))
    weights[0, 3, 0] = 1
    draw_overlays(tmp_path / 'x.png', [_overlay(weights, (0, 0, 3))], 'cap')
    image = cv2.imread(str(tmp_path / 'x.png'))
    # The frame is the bounding box of all dark pixels.
    ys, xs = np.nonzero((image.astype(int).min(-1) < 60))
    top, bottom = np.percentile(ys, (1, 99)).astype(int)
    left, right = np.percentile(xs, (1, 99)).astype(int)
    frame = image[top:bottom, left:right].astype(int)
    h, w = (n // 4 for n in frame.shape[:2])

    def tile(y, x):
        return frame[y * h:(y + 1) * h, x * w:(x + 1) * w]

    bright = np.median(tile(3, 0).reshape(-1, 3).sum(-1))
    dark = np.median(tile(1, 1).reshape(-1, 3).sum(-1))
    assert bright > dark + 150
    # Only the box of the query is cyan (in OpenCV's BGR order).
    cyan = cv2.inRange(frame.astype(np.uint8), (200, 200, 0), (255, 255, 80))
    ys, xs = np.nonzero(cyan)
    assert len(ys) > 20 and ys.max() < 1.4 * h and xs.min() > 2.6 * w


@pytest.mark.parametrize('frames, rows, columns', [([1], 1, 2),
                                                   (range(3), 2, 3),
                                                   (range(16), 2, 8)])
def test_layout_has_one_row_per_model_unless_one_frame(
        tmp_path, frames, rows, columns):
    weights = np.full((16, 2, 2), np.nan)
    weights[list(frames)] = 0.5
    overlays = [_overlay(weights, (1, 0, 0), title=name) for name in 'ab']
    draw_overlays(tmp_path / 'x.png', overlays)
    height, width = cv2.imread(str(tmp_path / 'x.png')).shape[:2]
    assert width == round(2.4 * columns * 120)
    assert height == round((2.7 * rows + 0.4) * 120)


def test_frame_is_visible_at_tokens_that_are_not_keys(tmp_path):
    weights = np.full((2, 2, 2), np.nan)
    weights[:, 0, 0] = 1
    overlay = _overlay(weights)
    overlay.frames[:] = (0, 200, 0)
    draw_overlays(tmp_path / 'x.png', [overlay])
    image = cv2.imread(str(tmp_path / 'x.png'))
    plain = (cv2.inRange(image, (0, 195, 0), (5, 205, 5)) > 0).sum()
    assert 0.5 < plain / (image.shape[0] * image.shape[1]) < 0.75
