# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
import hashlib

import numpy as np
import pytest
from mmaction.registry import TRANSFORMS
from mmcv.transforms import Compose
from PIL import Image

from mmvidattn.datasets.transforms.auto_augment import (
    IMAGENET_POLICY,
    OPS,
    V0_POLICY,
    AutoAugment,
    RandAugment,
)

HEIGHT, WIDTH = 40, 56
FILL = (9, 99, 199)
AUGMENTS = dict(
    auto=AutoAugment,
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


@pytest.mark.parametrize('name', [n for n, op in OPS.items() if op.limit])
def test_level_zero_is_the_identity(image, name):
    np.testing.assert_array_equal(apply(image, name, 0), image)


@pytest.mark.parametrize('fill', [None, FILL, 0, 255])
@pytest.mark.parametrize('op, axis', [('translate_x', 1), ('translate_y', 0)])
def test_translation_uncovers_the_fill_color(image, op, axis, fill):
    options = {} if fill is None else dict(fill=fill)
    augment = RandAugment(num_ops=1, ops=[op], **options)
    results = augment.transform(dict(imgs=[image]))
    # The default is gray.
    color = 128 if fill is None else fill
    filled = (results['imgs'][0] == color).all(2).all(1 - axis)
    assert filled.sum() == pytest.approx(
        image.shape[axis] * .9 * 150 / 331, abs=1)


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


# test_against_timm.py compares each entry with timm's copy of the tables.
@pytest.mark.parametrize('policy, digest', [
    (IMAGENET_POLICY, '3e1eb359bddebdd1'), (V0_POLICY, '54d93c7d0c752e68')],
    ids=['imagenet', 'v0'])
def test_policies_do_not_change(policy, digest):
    assert hashlib.sha256(repr(policy).encode()).hexdigest()[:16] == digest


def test_draws_every_sub_policy_with_its_probabilities(monkeypatch):
    np.random.seed(0)
    augment, randint, chosen = AutoAugment(), np.random.randint, []
    monkeypatch.setattr(
        np.random, 'randint',
        lambda n: chosen.append(randint(n)) or chosen[-1])
    draws = [augment.draw() for _ in range(10000)]
    for index, (first, second) in enumerate(IMAGENET_POLICY):
        results = [d for i, d in zip(chosen, draws) if i == index]
        assert 300 < len(results) < 500
        both = sum(len(draw) == 2 for draw in results) / len(results)
        assert both == pytest.approx(first[1] * second[1], abs=0.1)
        for draw in results:
            if len(draw) == 2:
                assert [name for name, _ in draw] == [first[0], second[0]]
                for (name, value), (_, _, level) in zip(draw, (first, second)):
                    assert abs(value) == pytest.approx(
                        OPS[name].limit * level / 9)


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


def test_noisy_magnitude_varies_within_the_limits():
    np.random.seed(0)
    augment = RandAugment(1, 9, magnitude_std=2.0, ops=['solarize'])
    values = np.array([augment.draw()[0][1] for _ in range(500)])
    assert values.max() == 256 and values.min() > 0
    assert np.unique(values).size > 200
    assert np.median(values) == pytest.approx(.9 * 256, rel=.05)


def test_prob_zero_does_not_change_the_frames(image):
    results = RandAugment(prob=0.).transform(dict(imgs=[image]))
    assert results['imgs'][0] is image


def test_runs_in_a_pipeline_on_a_video(motion_dir):
    pipeline = Compose([TRANSFORMS.build(t) for t in (
        dict(type='DecordInit'),
        dict(type='UniformSample', clip_len=4),
        dict(type='DecordDecode'),
        dict(type='Resize', scale=(48, 32), keep_ratio=False),
        dict(type='RandAugment'),
        dict(type='RandomErasing', erase_prob=1.),
        dict(type='FormatShape', input_format='NCTHW'),
        dict(type='PackActionInputs'))])
    np.random.seed(0)
    for _ in range(10):
        packed = pipeline(dict(
            filename=str(motion_dir / 'train/000000.mp4'), label=1,
            start_index=0, modality='RGB'))
        assert packed['inputs'].shape == (1, 3, 4, 32, 48)
        assert packed['inputs'].float().std() > 0


@pytest.mark.parametrize('bad', [
    np.zeros((8, 8), np.uint8), np.zeros((3, 8, 8), np.uint8),
    np.zeros((8, 8, 3), np.float32), 'frame'],
    ids=['grey', 'channels first', 'float', 'text'])
def test_rejects_frames_that_are_not_rgb_bytes(bad):
    with pytest.raises(ValueError, match=r'AutoAugment needs .* uint8'):
        AutoAugment().transform(dict(imgs=[bad]))


@pytest.mark.parametrize('option', [
    dict(ops=['rotate', 'flip']), dict(ops=[]), dict(magnitude=11),
    dict(fill=256), dict(fill=-1), dict(fill=(1, 2))], ids=str)
def test_rejects_option_out_of_range(option):
    with pytest.raises(ValueError, match=next(iter(option))):
        RandAugment(**option)


@pytest.mark.parametrize('magnitude', [0, 10])
def test_magnitude_is_from_0_to_10(magnitude):
    augment = RandAugment(num_ops=1, magnitude=magnitude, ops=['posterize'])
    assert augment.draw() == [('posterize', .4 * magnitude)]
