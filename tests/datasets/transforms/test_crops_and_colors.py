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

FLOW_SHAPE = 20, 30


def grid(height, width):
    """Return a frame whose pixels have their row and column as values."""
    rows, columns = np.indices((height, width))
    return np.stack([rows, columns, 0 * rows], -1).astype(np.int32)


@pytest.fixture
def frames():
    # Far from 0 and 255, because HSV needs values in [0, 1].
    return list(np.random.default_rng(0).integers(
        50, 200, (3, 11, 13, 3), np.uint8))


@pytest.mark.parametrize('height, width, corners', [
    # 224 of 256 rows: 16 above and below.
    (256, 341, [(16, 0), (16, 58), (16, 117)]),
    (341, 256, [(0, 16), (58, 16), (117, 16)]),
    (224, 225, [(0, 0), (0, 0), (0, 1)])])
def test_three_crops_along_the_longer_side(height, width, corners):
    results = UniformThreeCrop(224)(
        dict(imgs=[grid(height, width), grid(height, width) + 1000]))
    assert results['img_shape'] == (224, 224)
    got = [tuple(frame[0, 0, :2]) for frame in results['imgs']]
    assert all(frame.shape == (224, 224, 3) for frame in results['imgs'])
    # Both frames of a crop, then both frames of the next crop.
    assert got[::2] == corners
    assert got[1::2] == [(y + 1000, x + 1000) for y, x in corners]


def test_flow_crops_corners_and_center_and_mirrors_them():
    fields = np.random.default_rng(0).integers(
        0, 256, (2, *FLOW_SHAPE, 2)).astype(np.uint8)
    results = FlowTenCrop(16).transform(
        dict(imgs=list(fields.copy()), img_shape=FLOW_SHAPE))
    crops = results['imgs']
    assert len(crops) == 20 and results['img_shape'] == (16, 16)
    # Steps of a quarter of the remaining space, rounded down: 3 of 14, 1 of 4.
    corners = [(0, 0), (0, 12), (4, 0), (4, 12), (2, 6)]
    for i, (y, x) in enumerate(corners):
        want = fields[:, y:y + 16, x:x + 16]
        np.testing.assert_array_equal(crops[4 * i:4 * i + 2], want)
        mirrored = want[:, :, ::-1] * [-1, 1] + [255, 0]
        np.testing.assert_array_equal(crops[4 * i + 2:4 * i + 4], mirrored)
    # Fields may have the size of the crops, (width, height).
    results = FlowTenCrop((20, 16)).transform(
        dict(imgs=[fields[0][:16, :20]], img_shape=(16, 20)))
    assert {x.shape for x in results['imgs']} == {(16, 20, 2)}


def test_scale_jitter_draws_height_and_width_independently():
    np.random.seed(0)
    frame = np.zeros((100, 200, 3), np.uint8)
    shapes = []
    for _ in range(200):
        results = ScaleJitter((0.9, 1.33))(dict(imgs=[frame, frame]))
        first, second = (x.shape[:2] for x in results['imgs'])
        assert first == second == results['img_shape']
        shapes.append(first)
    scales = np.array(shapes) / [100, 200]
    assert scales.min() >= 0.89 and scales.max() <= 1.33
    assert (scales.min(0) < 0.92).all() and (scales.max(0) > 1.31).all()
    assert abs(np.corrcoef(scales.T)[0, 1]) < 0.2


SMALL = [np.zeros((15, 30, 3), np.uint8)]


@pytest.mark.parametrize('apply, error', [
    (lambda: UniformThreeCrop(224)(dict(imgs=[grid(200, 300)])),
     'of 224 .*got 200 x 300'),
    (lambda: FlowTenCrop(14).transform(dict(imgs=SMALL, img_shape=None)),
     r'flow fields \(H, W, 2\)'),
    (lambda: FlowTenCrop(16).transform(
        dict(imgs=[SMALL[0][..., :2]], img_shape=None)), 'got 30 x 15'),
    (lambda: ScaleJitter((0., 1.)), 'scale_range'),
    (lambda: PhotometricJitter(gamma=(-1, 1)), 'gamma')])
def test_rejects_small_frames_and_invalid_ranges(apply, error):
    with pytest.raises(ValueError, match=error):
        apply()


# scenic's colors


def shifted(values, saturation=1., hue=0.):
    """Change pixels [H, W, 3] in the standard library's HSV."""
    result = np.empty_like(values)
    for pixel in np.ndindex(values.shape[:2]):
        h, s, v = colorsys.rgb_to_hsv(*values[pixel])
        result[pixel] = colorsys.hsv_to_rgb(
            (h + hue) % 1, min(s * saturation, 1), v)
    return result


def expected_colors(frame, brightness, saturation, contrast, hue):
    values = shifted(frame / 255. + brightness, saturation)
    mean = values.mean((0, 1))
    return np.clip(shifted((values - mean) * contrast + mean, hue=hue),
                   0, 1) * 255


@pytest.mark.parametrize('drawn', [
    (0.125, 1., 1., 0.), (0., 0.6, 1., 0.), (0., 1.4, 1., 0.),
    (0., 1., 0.6, 0.), (0., 1., 1., -0.2), (-0.1, 1.3, 0.7, 0.15)], ids=str)
def test_scenic_colors_match_the_released_code(drawn, frames, monkeypatch):
    order, ranges = iter(drawn), []
    monkeypatch.setattr(np.random, 'uniform', lambda *limits: (
        ranges.append(limits), next(order))[1])
    got = ScenicColorJitter(prob=1., gray_prob=0.)(dict(imgs=frames))['imgs']
    for frame, result in zip(frames, got):
        assert result.dtype == np.uint8
        np.testing.assert_allclose(result, expected_colors(frame, *drawn),
                                   atol=0.51)
    assert ranges == [(-.125, .125), (.6, 1.4), (.6, 1.4), (-.2, .2)]


def test_scenic_colors_and_gray_are_independent(frames):
    np.random.seed(0)
    frame = frames[0][:2, :2]
    kinds = []
    for _ in range(1000):
        first, second = ScenicColorJitter()(dict(imgs=[frame] * 2))['imgs']
        assert (first == second).all()
        gray = (first == first[..., :1]).all()
        kinds.append((gray, (first == frame).all()))
    assert np.mean(kinds, axis=0) == pytest.approx((.1, .2 * .9), abs=.03)


# LAPS' colors

OFF = dict(brightness=(1, 1), saturation=(1, 1), gamma=(1, 1), hue=(0, 0))


def jitter(frames, prob=1, **ranges):
    transform = PhotometricJitter(prob, **{**OFF, **ranges})
    return np.stack(transform(dict(imgs=list(frames)))['imgs'])


def grey(frames):
    return (frames @ np.array([0.299, 0.587, 0.114]))[..., None]


def turned(hue):
    return lambda x: 255 * np.stack([shifted(one / 255, hue=hue) for one in x])


# The tolerances are one level from rounding gray times the factor and one
# from rounding the sum, and steps of two degrees of the hue.
@pytest.mark.parametrize('name, value, want, tolerance', [
    ('brightness', 1.7, lambda x: 1.7 * x, 2),
    ('saturation', 2.5, lambda x: grey(x) + 2.5 * (x - grey(x)), 2),
    ('saturation', 0, lambda x: grey(x) + 0 * x, 2),
    ('gamma', 0.8, lambda x: 255 * (x / 255)**0.8, 2),
    ('hue', -.5, turned(-.5), 7), ('hue', .3, turned(.3), 7)])
def test_laps_colors_match_the_formula(frames, name, value, want, tolerance):
    got = jitter(frames, **{name: (value, value)})
    want = np.clip(want(np.stack(frames).astype(float)), 0, 255)
    assert got.dtype == np.uint8
    assert np.abs(got - want).max() <= tolerance


def test_laps_changes_all_frames_alike_or_nothing(frames):
    assert np.array_equal(jitter(frames), np.stack(frames))
    assert np.array_equal(jitter(frames, 0, brightness=(2, 2)),
                          np.stack(frames))
    np.random.seed(0)
    got = jitter(frames[:1] * 3, brightness=(0.5, 2), saturation=(0.5, 3))
    assert (got == got[:1]).all() and not np.array_equal(got[0], frames[0])
