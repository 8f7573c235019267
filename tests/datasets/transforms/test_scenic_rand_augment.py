# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Compare ScenicRandAugment with the released formulas."""
import numpy as np
import pytest

from mmvidattn.datasets.transforms import ScenicRandAugment
from mmvidattn.datasets.transforms.scenic_rand_augment import OPS

CLIPS, FRAMES, SIDE = 5, 4, 32


@pytest.fixture(scope='module')
def clips():
    """Twenty frames in five clips, with low and high contrast."""
    rng = np.random.default_rng(0)
    return [rng.integers(low, low + width, (FRAMES, SIDE, SIDE, 3), np.uint8)
            for low, width in ((0, 256), (30, 150), (120, 16), (0, 90),
                               (200, 56))]


def _to_bytes(values):
    return np.clip(values, 0, 255).astype(np.uint8)


def _blend(other, clip, magnitude):
    factor = magnitude / 10 * 1.8 + 0.1
    return _to_bytes(other + factor * (clip.astype(float) - other))


def _gray(clip):
    weighted = clip / 255. @ np.array([.2989, .587, .114])
    return np.floor(weighted * 255.5)[..., None]


def _auto_contrast(clip, magnitude):
    low, high = clip.min((0, 1, 2)) * 1., clip.max((0, 1, 2)) * 1.
    return _to_bytes((clip - low) * 255 / (high - low))


def _equalize(clip, magnitude):
    result = np.empty_like(clip)
    for c in range(3):
        values = clip[..., c]
        counts = [int((values == v).sum()) for v in range(256)]
        step = (sum(counts) - [n for n in counts if n][-1]) // 255
        table, total = [], 0
        for count in counts:
            table.append(min((total + step // 2) // step, 255) if step
                         else len(table))
            total += count
        result[..., c] = np.array(table)[values]
    return result


def _posterize(clip, magnitude):
    unit = 2**(8 - int(magnitude / 10 * 4))
    return clip // np.uint16(unit) * np.uint16(unit)


def _solarize(clip, magnitude):
    threshold = int(magnitude / 10 * 256)
    threshold -= 256 * (threshold // 256)
    return np.where(clip.astype(int) >= threshold, 255 - clip, clip)


def _solarize_add(clip, magnitude):
    added = _to_bytes(clip + float(int(magnitude / 10 * 110)))
    return np.where(clip < 128, added, clip)


def _contrast(clip, magnitude):
    return _blend(min(FRAMES * SIDE * SIDE // 256, 255), clip, magnitude)


def _sharpness(clip, magnitude):
    image = clip.reshape(FRAMES * SIDE, SIDE, 3).astype(float)
    smooth = image.copy()
    total = 4 * image[1:-1, 1:-1]
    for i in range(3):
        for j in range(3):
            total = total + image[i:i + len(image) - 2, j:j + SIDE - 2]
    smooth[1:-1, 1:-1] = np.floor(total / 13)
    return _blend(smooth.reshape(clip.shape), clip, magnitude)


REFERENCES = dict(
    identity=lambda x, m: x,
    invert=lambda x, m: 255 - x,
    auto_contrast=_auto_contrast,
    equalize=_equalize,
    posterize=_posterize,
    solarize=_solarize,
    solarize_add=_solarize_add,
    color=lambda x, m: _blend(_gray(x), x, m),
    contrast=_contrast,
    brightness=lambda x, m: _blend(0., x, m),
    sharpness=_sharpness)
LEVELLESS = 'identity', 'invert', 'auto_contrast', 'equalize'
# Ops computed with integers.
EXACT = ('identity', 'invert', 'equalize', 'posterize', 'solarize',
         'solarize_add')


@pytest.mark.parametrize('name', REFERENCES)
def test_op_matches_the_released_code_at_all_levels(name, clips):
    for clip in clips:
        for magnitude in (0, ) if name in LEVELLESS else (0, 3, 9, 15, 20):
            before = clip.copy()
            got = OPS[name](clip, magnitude)
            assert got.dtype == np.uint8 and (clip == before).all()
            # Truncated floats may differ by one, which large color factors
            # amplify.
            np.testing.assert_allclose(
                got.astype(int), REFERENCES[name](clip, magnitude),
                atol=dict.fromkeys(EXACT, 0).get(
                    name, 3 if name == 'color' else 1))


def test_cutout_is_at_the_same_place_in_all_frames():
    np.random.seed(0)
    clip = np.full((3, 200, 200, 3), 9, np.uint8)
    largest = 0
    for _ in range(50):
        got = OPS['cutout'](clip, 20)
        assert (got[0] == got[1]).all() and (got[0] == got[2]).all()
        rows, columns = np.nonzero(got[0, ..., 0] == 0)
        box = rows.max() - rows.min() + 1, columns.max() - columns.min() + 1
        assert rows.size == box[0] * box[1] and max(box) <= 160
        # With its center at an edge, half of the box is inside.
        assert min(box) >= 80
        largest = max(largest, *box)
    assert largest == 160
    assert (OPS['cutout'](clip, 15) == 0).sum() <= 3 * 3 * 120**2


@pytest.mark.parametrize('frames', [
    [np.zeros((8, 8, 3), np.float32)],
    [np.zeros((8, 8), np.uint8)],
    [np.zeros((8, 8, 3), np.uint8), np.zeros((8, 9, 3), np.uint8)]])
def test_rejects_other_frames(frames):
    with pytest.raises(ValueError, match='needs frames of one shape'):
        ScenicRandAugment()(dict(imgs=frames))
