# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""AutoAugment and both RandAugments, compared with their sources."""
import hashlib

import numpy as np
import pytest
from PIL import Image, ImageEnhance, ImageFilter, ImageOps

from mmvidattn.datasets.transforms import (
    AutoAugment,
    RandAugment,
    ScenicRandAugment,
    auto_augment,
)
from mmvidattn.datasets.transforms.auto_augment import OPS
from mmvidattn.datasets.transforms.scenic_rand_augment import OPS as SCENIC_OPS

FRAMES, HEIGHT, WIDTH = 4, 32, 40
MIDDLE = 128, 128, 128
BICUBIC = Image.Resampling.BICUBIC


@pytest.fixture(scope='module')
def clips():
    """Clips of four frames, with high and low contrast."""
    rng = np.random.default_rng(0)
    return [rng.integers(low, low + width, (FRAMES, HEIGHT, WIDTH, 3),
                         np.uint8)
            for low, width in ((0, 256), (30, 150), (120, 16), (200, 56))]


def affine(image, *matrix):
    return image.transform(image.size, Image.Transform.AFFINE, matrix,
                           resample=BICUBIC, fillcolor=MIDDLE)


def posterize(image, bits):
    return image.point(lambda value: value & 256 - 2**(8 - bits))


# Operations that the policy "v0" lacks: a value, and Pillow's result.
OTHERS = dict(
    brightness=(-.4, lambda x: ImageEnhance.Brightness(x).enhance(.6)),
    contrast=(-.7, lambda x: ImageEnhance.Contrast(x).enhance(.3)),
    sharpness=(.8, lambda x: ImageEnhance.Sharpness(x).enhance(1.8)),
    translate_x=(.25, lambda x: affine(x, 1, 0, 10, 0, 1, 0)))


@pytest.mark.parametrize('name', OTHERS)
def test_op_matches_pillow(name, clips):
    value, reference = OTHERS[name]
    image = Image.fromarray(clips[0][0])
    ours = OPS[name].apply(image, value, fillcolor=MIDDLE, resample=BICUBIC)
    assert np.array_equal(ours, reference(image))


# timm's operations by level and sign.
V0_REFERENCES = dict(
    rotate=lambda x, level, s: x.rotate(
        s * 3 * level, resample=BICUBIC, fillcolor=MIDDLE),
    shear_x=lambda x, level, s: affine(x, 1, s * .03 * level, 0, 0, 1, 0),
    shear_y=lambda x, level, s: affine(x, 1, 0, 0, s * .03 * level, 1, 0),
    translate_y=lambda x, level, s: affine(
        x, 1, 0, 0, 0, 1, s * (level / 10 * .45) * x.height),
    color=lambda x, level, s: ImageEnhance.Color(x).enhance(.18 * level + .1),
    solarize=lambda x, level, s: ImageOps.solarize(x, int(25.6 * level)),
    solarize_add=lambda x, level, s: x.point(
        lambda value: value + 11 * level * (value < 128)),
    posterize=lambda x, level, s: posterize(x, int(.4 * level)),
    invert=lambda x, level, s: ImageOps.invert(x),
    equalize=lambda x, level, s: ImageOps.equalize(x),
    auto_contrast=lambda x, level, s: ImageOps.autocontrast(x))
LEVELLESS = 'identity', 'equalize', 'auto_contrast', 'invert'


@pytest.mark.parametrize('name', V0_REFERENCES)
def test_op_matches_timm_at_all_levels(name, clips, monkeypatch):
    reference, signs = V0_REFERENCES[name], set()
    augment = AutoAugment(policy='v0', interpolation='bicubic')
    np.random.seed(0)
    for level in range(11):
        ours = 0 if name in LEVELLESS else level
        monkeypatch.setattr(auto_augment, 'V0_POLICY', (((name, 1., ours),),))
        for image in (clip[0] for clip in clips):
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


def test_policy_is_timms_table_and_draws_a_pair_for_each_clip():
    digest = hashlib.sha256(repr(auto_augment.V0_POLICY).encode()).hexdigest()
    assert digest.startswith('54d93c7d0c752e68')
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


@pytest.mark.parametrize('augment', [
    lambda: AutoAugment('v0'), RandAugment,
    lambda: RandAugment(num_ops=3, magnitude_std=2.0, prob=0.7)],
    ids=['auto', 'rand', 'noisy'])
def test_all_frames_get_the_same_draw(augment, clips):
    augment, changed = augment(), 0
    frames = [clips[0][0], clips[1][0], clips[0][0]]
    for seed in range(10):
        np.random.seed(seed)
        clip = augment.transform(dict(imgs=list(frames)))['imgs']
        for frame, result in zip(frames, clip):
            np.random.seed(seed)
            alone = augment.transform(dict(imgs=[frame]))['imgs'][0]
            np.testing.assert_array_equal(result, alone)
        changed += (clip[0] != frames[0]).any()
    assert changed > 5


def test_random_interpolation_is_drawn_per_frame(clips, monkeypatch):
    monkeypatch.setattr(auto_augment, 'V0_POLICY', ((('rotate', 1., 5), ), ))
    np.random.seed(0)
    frames = AutoAugment(policy='v0', interpolation='random')(
        dict(imgs=[clips[0][0]] * 12))['imgs']
    assert len({frame.tobytes() for frame in frames}) == 2


GREY, RGB = np.zeros((8, 8), np.uint8), np.zeros((8, 8, 3), np.uint8)


@pytest.mark.parametrize('augment, frames, error', [
    *((lambda: AutoAugment('v0'), [frame], 'AutoAugment needs .* uint8')
      for frame in (GREY, RGB.T, RGB.astype(np.float32), 'frame')),
    *((ScenicRandAugment, [frame], 'ScenicRandAugment needs .* uint8')
      for frame in (GREY, RGB.astype(np.float32))),
    (ScenicRandAugment, [RGB, RGB[:, :7]], 'must have the same shape'),
    (lambda: RandAugment(magnitude=11), [RGB], 'magnitude .* got 11'),
    (lambda: ScenicRandAugment(magnitude=21), [RGB], 'magnitude .* got 21')])
def test_rejects_frames_and_options(augment, frames, error):
    with pytest.raises(ValueError, match=error):
        augment().transform(dict(imgs=frames))


# scenic transforms a clip like Pillow one high image, except for colors


def to_bytes(values):
    return np.clip(values, 0, 255).astype(np.uint8)


def blend(other, clip, magnitude):
    factor = magnitude / 10 * 1.8 + 0.1
    return to_bytes(other + factor * (clip.astype(float) - other))


def gray(clip):
    weighted = clip / 255. @ np.array([.2989, .587, .114])
    return np.floor(weighted * 255.5)[..., None]


def pillow(function):
    return lambda clip, m: np.array(function(
        Image.fromarray(clip.reshape(-1, WIDTH, 3)), m)).reshape(clip.shape)


SMOOTH = pillow(lambda x, m: x.filter(ImageFilter.SMOOTH))
# Result and tolerance of each op. Truncated floats may differ by one, which
# large factors amplify.
SCENIC_REFERENCES = dict(
    identity=(lambda x, m: x, 0), invert=(lambda x, m: 255 - x, 0),
    auto_contrast=(pillow(lambda x, m: ImageOps.autocontrast(x)), 1),
    equalize=(pillow(lambda x, m: ImageOps.equalize(x)), 0),
    posterize=(pillow(lambda x, m: posterize(x, int(m / 10 * 4))), 0),
    solarize=(pillow(lambda x, m: ImageOps.solarize(
        x, int(m / 10 * 256) % 256)), 0),
    solarize_add=(lambda x, m: np.where(
        x < 128, to_bytes(x + float(int(m / 10 * 110))), x), 0),
    color=(lambda x, m: blend(gray(x), x, m), 3),
    contrast=(lambda x, m: blend(
        min(FRAMES * HEIGHT * WIDTH // 256, 255), x, m), 1),
    brightness=(lambda x, m: blend(0., x, m), 1),
    sharpness=(lambda x, m: blend(SMOOTH(x, m), x, m), 4))


@pytest.mark.parametrize('name', SCENIC_REFERENCES)
def test_op_matches_scenic_at_all_levels(name, clips):
    assert {*SCENIC_OPS} == {*SCENIC_REFERENCES, 'cutout'}
    reference, tolerance = SCENIC_REFERENCES[name]
    for clip in clips:
        for magnitude in (0, ) if name in LEVELLESS else (0, 3, 9, 15, 20):
            before = clip.copy()
            got = SCENIC_OPS[name](clip, magnitude)
            assert got.dtype == np.uint8 and (clip == before).all()
            np.testing.assert_allclose(
                got.astype(int), reference(clip, magnitude), atol=tolerance)


def test_cutout_is_at_the_same_place_in_all_frames():
    np.random.seed(0)
    clip = np.full((3, 200, 200, 3), 9, np.uint8)
    largest = 0
    for _ in range(50):
        got = SCENIC_OPS['cutout'](clip, 20)
        assert (got == got[:1]).all()
        rows, columns = np.nonzero(got[0, ..., 0] == 0)
        box = rows.max() - rows.min() + 1, columns.max() - columns.min() + 1
        assert rows.size == box[0] * box[1] and max(box) <= 160
        # With its center at an edge, half of the box is inside.
        assert min(box) >= 80
        largest = max(largest, *box)
    assert largest == 160
    assert (SCENIC_OPS['cutout'](clip, 15) == 0).sum() <= 3 * 3 * 120**2
