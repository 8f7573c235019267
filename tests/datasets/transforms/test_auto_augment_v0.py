# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Compare AutoAugment's policy "v0" with timm's table and formulas."""
import numpy as np
import pytest
from PIL import Image, ImageEnhance, ImageOps

from mmvidattn.datasets.transforms import AutoAugment, auto_augment

NAMES = dict(
    Equalize='equalize', AutoContrast='auto_contrast', Invert='invert',
    ShearX='shear_x', ShearY='shear_y', Rotate='rotate', Color='color',
    TranslateYRel='translate_y', Posterize='posterize', Solarize='solarize',
    SolarizeAdd='solarize_add')
LEVELLESS = 'Equalize', 'AutoContrast', 'Invert'
# Operation, probability, level, twice.
PAIRS = """
Equalize .8 1, ShearY .8 4
Color .4 9, Equalize .6 3
Color .4 1, Rotate .6 8
Solarize .8 3, Equalize .4 7
Solarize .4 2, Solarize .6 2
Color .2 0, Equalize .8 8
Equalize .4 8, SolarizeAdd .8 3
ShearX .2 9, Rotate .6 8
Color .6 1, Equalize 1 2
Invert .4 9, Rotate .6 0
Equalize 1 9, ShearY .6 3
Color .4 7, Equalize .6 0
Posterize .4 6, AutoContrast .4 7
Solarize .6 8, Color .6 9
Solarize .2 4, Rotate .8 9
Rotate 1 7, TranslateYRel .8 9
ShearX 0 0, Solarize .8 4
ShearY .8 0, Color .6 4
Color 1 0, Rotate .6 2
Equalize .8 4, Equalize 0 8
Equalize 1 4, AutoContrast .6 2
ShearY .4 7, SolarizeAdd .6 7
Posterize .8 2, Solarize .6 10
Solarize .6 8, Equalize .6 1
Color .8 6, Rotate .4 5
""".strip().splitlines()
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
    Rotate=lambda x, level, s: x.rotate(
        s * 3 * level, resample=Image.Resampling.BICUBIC, fillcolor=FILL),
    ShearX=lambda x, level, s: _affine(x, (1, s * .03 * level, 0, 0, 1, 0)),
    ShearY=lambda x, level, s: _affine(x, (1, 0, 0, s * .03 * level, 1, 0)),
    TranslateYRel=lambda x, level, s: _affine(
        x, (1, 0, 0, 0, 1, s * (level / 10 * .45) * x.height)),
    Color=lambda x, level, s: ImageEnhance.Color(x).enhance(.18 * level + .1),
    Solarize=lambda x, level, s: _solarized(x, int(25.6 * level)),
    SolarizeAdd=lambda x, level, s: _added(x, int(11 * level)),
    Posterize=lambda x, level, s: _with_bits(x, int(.4 * level)),
    Invert=lambda x, level, s: ImageOps.invert(x),
    Equalize=lambda x, level, s: ImageOps.equalize(x),
    AutoContrast=lambda x, level, s: ImageOps.autocontrast(x))


@pytest.fixture(scope='module')
def images():
    rng = np.random.default_rng(0)
    return [rng.integers(low, low + width, (32, 40, 3), np.uint8)
            for low, width in ((0, 256), (40, 90), (90, 30), (120, 8))]


def test_pairs_match_timm():
    assert len(PAIRS) == len(auto_augment.V0_POLICY) == 25
    for line, pair in zip(PAIRS, auto_augment.V0_POLICY):
        want = [op.split() for op in line.split(', ')]
        assert list(pair) == [
            (NAMES[name], float(prob),
             0 if name in LEVELLESS else int(level))
            for name, prob, level in want]


@pytest.mark.parametrize('name', REFERENCES)
def test_op_matches_timm_at_all_levels(name, images, monkeypatch):
    reference, signs = REFERENCES[name], set()
    augment = AutoAugment(policy='v0', interpolation='bicubic')
    np.random.seed(0)
    for level in range(11):
        ours = 0 if name in LEVELLESS else level
        monkeypatch.setattr(auto_augment, 'V0_POLICY',
                            (((NAMES[name], 1., ours), ), ))
        for image in images:
            got = augment(dict(imgs=[image]))['imgs'][0]
            wants = [np.array(reference(Image.fromarray(image), level, sign))
                     for sign in (1, -1)]
            matches = [(got == want).all() for want in wants]
            # PIL's truncation after a factor 1 + x may differ by one.
            assert any(matches) or name == 'Color' and np.abs(
                got.astype(int) - wants[0]).max() <= 1, (level, matches)
            if matches[0] != matches[1]:
                signs.add(matches[0])
    signed = name.startswith(('Rotate', 'Shear', 'Translate'))
    assert signs == ({True, False} if signed else set())


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
