# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
import colorsys

import numpy as np
import pytest

from mmvidattn.datasets.transforms import (
    FlowTenCrop,
    PhotometricJitter,
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
    order, ranges = iter(drawn), []
    monkeypatch.setattr(np.random, 'uniform', lambda *limits: (
        ranges.append(limits), next(order))[1])
    got = ScenicColorJitter(prob=1., gray_prob=0.)(dict(imgs=frames))['imgs']
    for frame, result in zip(frames, got):
        assert result.dtype == np.uint8
        np.testing.assert_allclose(result, _expected(frame, *drawn), atol=0.51)
    assert ranges == [(-.125, .125), (.6, 1.4), (.6, 1.4), (-.2, .2)]


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


# LAPS

OFF = dict(brightness=(1, 1), saturation=(1, 1), gamma=(1, 1), hue=(0, 0))


@pytest.fixture
def frames():
    rng = np.random.default_rng(0)
    return list(rng.integers(0, 256, (3, 11, 13, 3), dtype=np.uint8))


def _apply(frames, prob=1, **ranges):
    transform = PhotometricJitter(prob, **{**OFF, **ranges})
    return np.stack(transform(dict(imgs=list(frames)))['imgs'])


def _grey(frames):
    return (frames @ np.array([0.299, 0.587, 0.114]))[..., None]


@pytest.mark.parametrize('name, value, want', [
    ('brightness', 1.7, lambda x: 1.7 * x),
    ('saturation', 2.5, lambda x: _grey(x) + 2.5 * (x - _grey(x))),
    ('saturation', 0, lambda x: _grey(x) + 0 * x),
    ('gamma', 0.8, lambda x: 255 * (x / 255)**0.8)])
def test_changes_match_the_formula(frames, name, value, want):
    got = _apply(frames, **{name: (value, value)})
    want = np.clip(want(np.stack(frames).astype(float)), 0, 255)
    assert got.dtype == np.uint8
    # One level from rounding gray times the factor, one from rounding the sum.
    assert np.abs(got - want).max() <= 2


@pytest.mark.parametrize('turn', [-0.5, -0.2, 0.3])
def test_hue_turns(turn):
    frame = np.array([[[200, 40, 40], [30, 200, 90]]], np.uint8)
    got = _apply([frame], hue=(turn, turn))[0, 0]
    for pixel, result in zip(frame[0], got):
        h, s, v = colorsys.rgb_to_hsv(*pixel / 255)
        want = np.array(colorsys.hsv_to_rgb((h + turn) % 1, s, v)) * 255
        assert np.abs(result - want).max() < 8


def test_neutral_values_change_nothing(frames):
    assert np.array_equal(_apply(frames), np.stack(frames))
    assert np.array_equal(
        _apply(frames, 0, brightness=(2, 2)), np.stack(frames))


def test_all_frames_get_the_same_changes(frames):
    np.random.seed(0)
    same = [frames[0]] * 3
    got = _apply(same, brightness=(0.5, 2), saturation=(0.5, 3))
    assert np.array_equal(got[0], got[1]) and np.array_equal(got[1], got[2])
    assert not np.array_equal(got[0], frames[0])


@pytest.mark.parametrize('kwargs, message', [
    (dict(brightness=(2, 1)), r'brightness.*got \(2, 1\)'),
    (dict(gamma=(-1, 1)), 'gamma'), (dict(hue=(-0.6, 0)), 'hue.*-0.5')])
def test_rejects(kwargs, message):
    with pytest.raises(ValueError, match=message):
        PhotometricJitter(**kwargs)


# Optical flow

SHAPE = 20, 30


def _fields(num=2):
    return [np.random.default_rng(t).integers(
        0, 256, (*SHAPE, 2)).astype(np.uint8) for t in range(num)]


def test_crops_corners_and_center_and_mirrors_them():
    fields = _fields()
    results = FlowTenCrop(16).transform(
        dict(imgs=[field.copy() for field in fields], img_shape=SHAPE))
    crops = results['imgs']
    assert len(crops) == 20 and results['img_shape'] == (16, 16)
    # Steps of a quarter of the remaining space, rounded down: 3 of 14, 1 of 4.
    corners = [(0, 0), (0, 12), (4, 0), (4, 12), (2, 6)]
    for i, (y, x) in enumerate(corners):
        for t, field in enumerate(fields):
            want = field[y:y + 16, x:x + 16]
            np.testing.assert_array_equal(crops[4 * i + t], want)
            mirrored = np.stack([255 - want[:, ::-1, 0], want[:, ::-1, 1]], -1)
            np.testing.assert_array_equal(crops[4 * i + 2 + t], mirrored)


@pytest.mark.parametrize('field, error', [
    (np.zeros((20, 30, 3), np.uint8), r'flow fields \(H, W, 2\)'),
    (np.zeros((15, 30, 2), np.uint8), 'got 30 x 15')])
def test_rejects_images_and_small_fields(field, error):
    with pytest.raises(ValueError, match=error):
        FlowTenCrop(16).transform(dict(imgs=[field], img_shape=None))
    # Fields may have the size of the crops.
    results = FlowTenCrop((20, 16)).transform(dict(
        imgs=[np.zeros((16, 20, 2), np.uint8)], img_shape=(16, 20)))
    assert {x.shape for x in results['imgs']} == {(16, 20, 2)}
