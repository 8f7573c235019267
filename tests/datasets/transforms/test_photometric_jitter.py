# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
import colorsys

import numpy as np
import pytest

from mmvidattn.datasets.transforms import PhotometricJitter

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
