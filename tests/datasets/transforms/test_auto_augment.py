# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
import hashlib

import numpy as np
import pytest
from PIL import Image, ImageEnhance, ImageOps

from mmvidattn.datasets.transforms import auto_augment
from mmvidattn.datasets.transforms.auto_augment import (
    OPS,
    AutoAugment,
    RandAugment,
)

HEIGHT, WIDTH = 40, 56
FILL = (9, 99, 199)
AUGMENTS = dict(
    auto=lambda: AutoAugment('v0'),
    rand=RandAugment,
    noisy=lambda: RandAugment(num_ops=3, magnitude_std=2.0, prob=0.7))


@pytest.fixture
def image():
    low, high = [30, 5, 60], [220, 180, 250]
    return np.random.default_rng(0).integers(
        low, high, (HEIGHT, WIDTH, 3), dtype=np.uint8)


def apply(image, name, value):
    op = OPS[name]
    return np.array(op.apply(
        Image.fromarray(image), value, fillcolor=FILL,
        resample=Image.Resampling.NEAREST))


def grey(image):
    return np.floor(image @ np.array([.299, .587, .114]) + .5)


def towards(image, other, factor):
    return (other + factor * (image - other)).clip(0, 255)


def smooth(image):
    padded = np.pad(image.astype(float), ((1, 1), (1, 1), (0, 0)))
    total = 4 * image.astype(float)
    for i in range(3):
        for j in range(3):
            total += padded[i:i + HEIGHT, j:j + WIDTH]
    result = image.astype(float)
    result[1:-1, 1:-1] = np.rint(total / 13)[1:-1, 1:-1]
    return result


# The policy "v0" has the other operations, see below.
REFERENCES = dict(
    brightness=(-.4, lambda x: x * .6),
    contrast=(-.7, lambda x: towards(x, np.floor(grey(x).mean() + .5), .3)),
    sharpness=(.8, lambda x: towards(x, smooth(x), 1.8)),
    translate_x=(14 / WIDTH, lambda x: np.concatenate(
        [x[:, 14:], np.full((HEIGHT, 14, 3), FILL)], axis=1)))


@pytest.mark.parametrize('name', REFERENCES)
def test_op_matches_reference(image, name):
    value, reference = REFERENCES[name]
    ours = apply(image, name, value)
    np.testing.assert_allclose(ours, reference(image), atol=1)
    assert (ours != image).any()


@pytest.mark.parametrize('kind', AUGMENTS)
def test_all_frames_get_the_same_draw(image, kind):
    augment, changed = AUGMENTS[kind](), 0
    frames = [image, np.ascontiguousarray(image[::-1]), image]
    for seed in range(60):
        np.random.seed(seed)
        clip = augment.transform(dict(imgs=list(frames)))['imgs']
        for frame, result in zip(frames, clip):
            np.random.seed(seed)
            alone = augment.transform(dict(imgs=[frame]))['imgs'][0]
            np.testing.assert_array_equal(result, alone)
        changed += (clip[0] != image).any()
    assert changed > 30


def test_rand_augment_draws_the_papers_ops_uniformly_with_either_sign():
    np.random.seed(0)
    augment = RandAugment(num_ops=2)
    draws = [pair for _ in range(1400) for pair in augment.draw()]
    names = [name for name, _ in draws]
    assert set(names) == set(OPS) - {'invert', 'solarize_add'}
    assert all(140 < names.count(name) < 260 for name in set(names))
    turns = [value for name, value in draws if name == 'rotate']
    assert 0.4 < np.mean(np.array(turns) > 0) < 0.6
    assert set(np.abs(turns)) == {27.}
    assert {v for n, v in draws if n == 'posterize'} == {3.6}


@pytest.mark.parametrize('bad', [
    np.zeros((8, 8), np.uint8), np.zeros((3, 8, 8), np.uint8),
    np.zeros((8, 8, 3), np.float32), 'frame'],
    ids=['grey', 'channels first', 'float', 'text'])
def test_rejects_frames_that_are_not_rgb_bytes(bad):
    with pytest.raises(ValueError, match=r'AutoAugment needs .* uint8'):
        AutoAugment('v0').transform(dict(imgs=[bad]))


def test_rejects_option_out_of_range():
    with pytest.raises(ValueError, match='magnitude'):
        RandAugment(magnitude=11)


# Policy "v0"

LEVELLESS = 'equalize', 'auto_contrast', 'invert'
MIDDLE = 128, 128, 128


def _affine(image, matrix):
    return image.transform(image.size, Image.Transform.AFFINE, matrix,
                           resample=Image.Resampling.BICUBIC, fillcolor=MIDDLE)


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


# timm's operations by level and sign.
V0_REFERENCES = dict(
    rotate=lambda x, level, s: x.rotate(
        s * 3 * level, resample=Image.Resampling.BICUBIC, fillcolor=MIDDLE),
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


@pytest.mark.parametrize('name', V0_REFERENCES)
def test_op_matches_timm_at_all_levels(name, images, monkeypatch):
    reference, signs = V0_REFERENCES[name], set()
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
