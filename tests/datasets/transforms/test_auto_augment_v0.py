# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Compare the operations of AutoAugment's policy "v0" with timm's formulas."""
import hashlib

import numpy as np
import pytest
from PIL import Image, ImageEnhance, ImageOps

from mmvidattn.datasets.transforms import AutoAugment, auto_augment

LEVELLESS = 'equalize', 'auto_contrast', 'invert'
FILL = (128, 128, 128)


def _affine(image, matrix):
    return image.transform(image.size, Image.Transform.AFFINE, matrix,
                           resample=Image.Resampling.BICUBIC, fillcolor=FILL)


def _each(image, function):
    return Image.fromarray(function(np.array(image)).astype(np.uint8))


def _solarized(image, threshold):
    return _each(image, lambda x: np.where(x < threshold, x, 255 - x))


def _added(image, amount):
    return _each(image, lambda x: np.where(
        x < 128, np.minimum(x.astype(int) + amount, 255), x))


def _with_bits(image, bits):
    return _each(image, lambda x: x.astype(int) // 2**(8 - bits) *
                 2**(8 - bits))


# Reference by level and sign.
REFERENCES = dict(
    rotate=lambda x, level, s: x.rotate(
        s * 3 * level, resample=Image.Resampling.BICUBIC, fillcolor=FILL),
    shear_x=lambda x, level, s: _affine(x, (1, s * .03 * level, 0, 0, 1, 0)),
    shear_y=lambda x, level, s: _affine(x, (1, 0, 0, s * .03 * level, 1, 0)),
    translate_y=lambda x, level, s: _affine(
        x, (1, 0, 0, 0, 1, s * (level / 10 * .45) * x.height)),
    color=lambda x, level, s: ImageEnhance.Color(x).enhance(.18 * level + .1),
    solarize=lambda x, level, s: _solarized(x, int(25.6 * level)),
    solarize_add=lambda x, level, s: _added(x, int(11 * level)),
    posterize=lambda x, level, s: _with_bits(x, int(.4 * level)),
    invert=lambda x, level, s: ImageOps.invert(x),
    equalize=lambda x, level, s: ImageOps.equalize(x),
    auto_contrast=lambda x, level, s: ImageOps.autocontrast(x))


@pytest.fixture(scope='module')
def images():
    rng = np.random.default_rng(0)
    return [rng.integers(low, low + width, (32, 40, 3), np.uint8)
            for low, width in ((0, 256), (40, 90), (90, 30), (120, 8))]


@pytest.mark.parametrize('name', REFERENCES)
def test_op_matches_timm_at_all_levels(name, images, monkeypatch):
    reference, signs = REFERENCES[name], set()
    augment = AutoAugment(policy='v0', interpolation='bicubic')
    np.random.seed(0)
    for level in range(11):
        ours = 0 if name in LEVELLESS else level
        monkeypatch.setattr(auto_augment, 'V0_POLICY',
                            (((name, 1., ours), ), ))
        for image in images:
            got = augment(dict(imgs=[image]))['imgs'][0]
            wants = [np.array(reference(Image.fromarray(image), level, sign))
                     for sign in (1, -1)]
            matches = [(got == want).all() for want in wants]
            # PIL's truncation after a factor 1 + x may differ by one.
            assert any(matches) or name == 'color' and np.abs(
                got.astype(int) - wants[0]).max() <= 1, (level, matches)
            if matches[0] != matches[1]:
                signs.add(matches[0])
    signed = name.startswith(('rotate', 'shear', 'translate'))
    assert signs == ({True, False} if signed else set())


def test_the_policy_does_not_change():
    """Equal to timm's table."""
    digest = hashlib.sha256(repr(auto_augment.V0_POLICY).encode()).hexdigest()
    assert digest.startswith('54d93c7d0c752e68')


def test_draws_once_per_clip(images):
    np.random.seed(0)
    augment = AutoAugment(policy='v0')
    draws = [augment.draw() for _ in range(5000)]
    # "Rotate 1 7" comes with TranslateYRel in 80 % of its 200 draws.
    turned = [draw for draw in draws
              if draw and draw[0][0] == 'rotate'
              and abs(draw[0][1]) == pytest.approx(21)]
    assert 140 < len(turned) < 260
    assert np.mean([len(draw) == 2 for draw in turned]) == pytest.approx(
        .8, abs=.1)


def test_random_interpolation_is_drawn_per_frame(images, monkeypatch):
    monkeypatch.setattr(auto_augment, 'V0_POLICY', ((('rotate', 1., 5), ), ))
    np.random.seed(0)
    frames = AutoAugment(policy='v0', interpolation='random')(
        dict(imgs=[images[0]] * 12))['imgs']
    assert len({frame.tobytes() for frame in frames}) == 2
