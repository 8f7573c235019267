# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
import colorsys

import numpy as np
import pytest

from mmvidattn.datasets.transforms import (
    ScaleJitter,
    ScenicColorJitter,
    UniformThreeCrop,
)


def _grid(height, width):
    """Return a frame whose pixels have their row and column as values."""
    rows, columns = np.indices((height, width))
    return np.stack([rows, columns, 0 * rows], -1).astype(np.int32)


@pytest.mark.parametrize('height, width, corners', [
    # 224 of 256 rows: 16 above and below.
    (256, 341, [(16, 0), (16, 58), (16, 117)]),
    (341, 256, [(0, 16), (58, 16), (117, 16)]),
    (256, 256, [(16, 0), (16, 16), (16, 32)]),
    (224, 225, [(0, 0), (0, 0), (0, 1)])])
def test_three_crops_along_the_longer_side(height, width, corners):
    results = UniformThreeCrop(224)(
        dict(imgs=[_grid(height, width), _grid(height, width) + 1000]))
    assert results['img_shape'] == (224, 224)
    got = [tuple(frame[0, 0, :2]) for frame in results['imgs']]
    assert all(frame.shape == (224, 224, 3) for frame in results['imgs'])
    # Both frames of a crop, then both frames of the next crop.
    assert got[::2] == corners
    assert got[1::2] == [(y + 1000, x + 1000) for y, x in corners]


def test_three_crops_reject_small_frames():
    with pytest.raises(ValueError, match='of 224 .*got 200 x 300'):
        UniformThreeCrop(224)(dict(imgs=[_grid(200, 300)]))


def test_jitter_draws_height_and_width_independently():
    np.random.seed(0)
    frame = np.zeros((100, 200, 3), np.uint8)
    shapes = []
    for _ in range(300):
        results = ScaleJitter((0.9, 1.33))(dict(imgs=[frame, frame]))
        first, second = (x.shape[:2] for x in results['imgs'])
        assert first == second == results['img_shape']
        shapes.append(first)
    scales = np.array(shapes) / [100, 200]
    assert scales.min() >= 0.89 and scales.max() <= 1.33
    assert (scales.min(0) < 0.92).all() and (scales.max(0) > 1.31).all()
    assert abs(np.corrcoef(scales.T)[0, 1]) < 0.2


def _expected(frame, brightness, saturation, contrast, hue):
    """Compute each pixel with the standard library's HSV."""
    values = frame / 255. + brightness
    for pixel in np.ndindex(values.shape[:2]):
        h, s, v = colorsys.rgb_to_hsv(*values[pixel])
        values[pixel] = colorsys.hsv_to_rgb(h, min(s * saturation, 1), v)
    mean = values.mean((0, 1))
    values = (values - mean) * contrast + mean
    for pixel in np.ndindex(values.shape[:2]):
        h, s, v = colorsys.rgb_to_hsv(*values[pixel])
        values[pixel] = colorsys.hsv_to_rgb((h + hue) % 1, s, v)
    return np.clip(values, 0, 1) * 255


@pytest.mark.parametrize('drawn', [
    (0.125, 1., 1., 0.), (-0.125, 1., 1., 0.), (0., 0.6, 1., 0.),
    (0., 1.4, 1., 0.), (0., 1., 0.6, 0.), (0., 1., 1.4, 0.),
    (0., 1., 1., 0.2), (0., 1., 1., -0.2), (0.1, 1.3, 0.7, 0.15)], ids=str)
def test_colors_match_the_released_code(drawn, monkeypatch):
    # Far from 0 and 255, because HSV needs values in [0, 1].
    frames = list(np.random.default_rng(0).integers(
        50, 200, (2, 16, 16, 3), np.uint8))
    order = iter(drawn)
    monkeypatch.setattr(np.random, 'uniform', lambda low, high: next(order))
    got = ScenicColorJitter(prob=1., gray_prob=0.)(dict(imgs=frames))['imgs']
    for frame, result in zip(frames, got):
        assert result.dtype == np.uint8
        np.testing.assert_allclose(result, _expected(frame, *drawn), atol=0.51)


def test_colors_and_gray_are_independent():
    np.random.seed(0)
    frame = np.random.default_rng(0).integers(0, 256, (8, 8, 3), np.uint8)
    kinds = []
    for _ in range(1000):
        first, second = ScenicColorJitter()(dict(imgs=[frame, frame]))['imgs']
        assert (first == second).all()
        gray = (first == first[..., :1]).all()
        kinds.append((gray, (first == frame).all()))
    grays, same = np.mean(kinds, axis=0)
    assert grays == pytest.approx(0.1, abs=0.03)
    assert same == pytest.approx(0.2 * 0.9, abs=0.04)


@pytest.mark.parametrize('kwargs, message', [
    (dict(hue=0.6), 'hue must be'), (dict(contrast=(2, 1)), 'contrast must')])
def test_colors_reject_options(kwargs, message):
    with pytest.raises(ValueError, match=message):
        ScenicColorJitter(**kwargs)
