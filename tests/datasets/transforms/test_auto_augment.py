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


def smooth(image):
    padded = np.pad(image.astype(float), ((1, 1), (1, 1), (0, 0)))
    total = 4 * image.astype(float)
    for i in range(3):
        for j in range(3):
            total += padded[i:i + HEIGHT, j:j + WIDTH]
    result = image.astype(float)
    result[1:-1, 1:-1] = np.rint(total / 13)[1:-1, 1:-1]
    return result


def equalized(channel):
    counts = np.bincount(channel.ravel(), minlength=256)
    step = (counts.sum() - counts[counts > 0][-1]) // 255
    before = np.cumsum(counts) - counts
    return ((before + step // 2) // step).clip(0, 255)[channel]


def stretched(channel):
    low, high = int(channel.min()), int(channel.max())
    return (channel.astype(float) - low) * 255 / (high - low)


def per_channel(image, function):
    return np.stack([function(image[..., c]) for c in range(3)], axis=2)


def moved(image, source):
    """Move each pixel from ``source(x, y)``, or use the fill color."""
    result = np.empty_like(image)
    for y in range(HEIGHT):
        for x in range(WIDTH):
            u, v = (int(np.floor(w)) for w in source(x + .5, y + .5))
            inside = 0 <= u < WIDTH and 0 <= v < HEIGHT
            result[y, x] = image[v, u] if inside else FILL
    return result


def rotated(x, y, degrees):
    """Return where a pixel comes from in a counter-clockwise turn."""
    angle = np.deg2rad(degrees)
    dx, dy = x - WIDTH / 2, y - HEIGHT / 2
    return (dx * np.cos(angle) - dy * np.sin(angle) + WIDTH / 2,
            dx * np.sin(angle) + dy * np.cos(angle) + HEIGHT / 2)


def towards(image, other, factor):
    return (other + factor * (image - other)).clip(0, 255)


REFERENCES = dict(
    identity=(0, lambda x: x),
    invert=(0, lambda x: 255 - x),
    auto_contrast=(0, lambda x: per_channel(x, stretched)),
    equalize=(0, lambda x: per_channel(x, equalized)),
    solarize=(100, lambda x: np.where(x < 156, x, 255 - x)),
    solarize_add=(77, lambda x: np.where(x < 128, x + 77., x)),
    posterize=(3, lambda x: x // 8 * 8),
    brightness=(-.4, lambda x: x * .6),
    color=(.5, lambda x: towards(x, grey(x)[..., None], 1.5)),
    contrast=(-.7, lambda x: towards(x, np.floor(grey(x).mean() + .5), .3)),
    sharpness=(.8, lambda x: towards(x, smooth(x), 1.8)),
    shear_x=(.25, lambda x: moved(x, lambda u, v: (u + .25 * v, v))),
    shear_y=(-.2, lambda x: moved(x, lambda u, v: (u, v - .2 * u))),
    translate_x=(.25, lambda x: moved(x, lambda u, v: (u + 14, v))),
    translate_y=(-.25, lambda x: moved(x, lambda u, v: (u, v - 10))),
    rotate=(20, lambda x: moved(x, lambda u, v: rotated(u, v, 20))))


@pytest.mark.parametrize('name', OPS)
def test_op_matches_reference(image, name):
    value, reference = REFERENCES[name]
    ours, expected = apply(image, name, value), reference(image)
    if name == 'rotate' or name.startswith('shear'):
        # Sources between two pixels may be rounded differently.
        assert (ours != expected).any(2).mean() < 0.02
    else:
        np.testing.assert_allclose(ours, expected, atol=1)
    assert name == 'identity' or (ours != image).any()


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
    names = [name for _ in range(3500) for name, _ in augment.draw()]
    assert set(names) == set(OPS) - {'invert', 'solarize_add'}
    assert all(400 < names.count(name) < 600 for name in set(names))


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
