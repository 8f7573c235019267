# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
import numpy as np
import pytest
from PIL import Image

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


# test_auto_augment_v0.py compares the other operations.
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


def test_signs_of_signed_ops_are_balanced():
    np.random.seed(0)
    augment = RandAugment(num_ops=1, ops=['rotate', 'posterize'])
    draws = [augment.draw()[0] for _ in range(1000)]
    turns = [value for name, value in draws if name == 'rotate']
    assert 0.4 < np.mean(np.array(turns) > 0) < 0.6
    assert set(np.abs(turns)) == {27.}
    assert {v for n, v in draws if n == 'posterize'} == {3.6}


def test_rand_augment_draws_the_papers_ops_uniformly():
    np.random.seed(0)
    augment = RandAugment(num_ops=2)
    names = [name for _ in range(1400) for name, _ in augment.draw()]
    assert set(names) == set(OPS) - {'invert', 'solarize_add'}
    assert all(140 < names.count(name) < 260 for name in set(names))


@pytest.mark.parametrize('bad', [
    np.zeros((8, 8), np.uint8), np.zeros((3, 8, 8), np.uint8),
    np.zeros((8, 8, 3), np.float32), 'frame'],
    ids=['grey', 'channels first', 'float', 'text'])
def test_rejects_frames_that_are_not_rgb_bytes(bad):
    with pytest.raises(ValueError, match=r'AutoAugment needs .* uint8'):
        AutoAugment('v0').transform(dict(imgs=[bad]))


@pytest.mark.parametrize('option', [
    dict(ops=['rotate', 'flip']), dict(ops=[]), dict(magnitude=11),
    dict(fill=256), dict(fill=-1), dict(fill=(1, 2))], ids=str)
def test_rejects_option_out_of_range(option):
    with pytest.raises(ValueError, match=next(iter(option))):
        RandAugment(**option)
