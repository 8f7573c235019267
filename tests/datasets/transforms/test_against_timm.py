# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Compare augmentations of the released recipes with timm.

timm's files are loaded individually, because ``import timm`` needs
torchvision; ``pip install --no-deps timm`` is enough. Without timm,
test_auto_augment_v0.py compares AutoAugment with a copy of timm's table.
"""
import importlib.util
import random
from pathlib import Path

import numpy as np
import pytest
import torch
from mmaction.models.utils import MixupBlending
from mmaction.registry import TRANSFORMS
from PIL import Image

from mmvidattn.datasets.transforms import auto_augment as ours

FILL = (128, 128, 128)
HPARAMS = dict(translate_const=100, img_mean=FILL,
               interpolation=Image.Resampling.BICUBIC)


def _share(name):
    return lambda level: level / 10 * ours.OPS[name].limit


# Our name of each op in timm's RandAugment, and its value at a level. Most ops
# have the limits of the paper, which we use too.
RAND = {
    theirs: (ours_name, _share(ours_name)) for theirs, ours_name in dict(
        AutoContrast='auto_contrast', Equalize='equalize', Invert='invert',
        Rotate='rotate', SolarizeIncreasing='solarize',
        SolarizeAdd='solarize_add', ColorIncreasing='color',
        ContrastIncreasing='contrast', BrightnessIncreasing='brightness',
        SharpnessIncreasing='sharpness', ShearX='shear_x',
        ShearY='shear_y').items()
} | dict(
    # This variant keeps 4 bits at level 0, and no bits at level 10.
    PosterizeIncreasing=('posterize', lambda level: 4 + int(level / 10 * 4)),
    # 0.45 of the side; the paper has 150 / 331.
    TranslateXRel=('translate_x', lambda level: level / 10 * .45),
    TranslateYRel=('translate_y', lambda level: level / 10 * .45))


def _read(name):
    result = importlib.util.find_spec('timm')
    if result is None:
        pytest.skip('timm is not installed: pip install --no-deps timm')
    path = Path(result.origin).parent / 'data' / f'{name}.py'
    spec = importlib.util.spec_from_file_location(f'timm_{name}', path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope='module')
def timm():
    return _read('auto_augment')


@pytest.fixture(scope='module')
def images():
    rng = np.random.default_rng(0)
    return [Image.fromarray(rng.integers(low, low + width, (32, 40, 3),
                                         np.uint8))
            for low in (0, 40, 90, 120) for width in (256 - low, 90, 60, 30,
                                                      8)]


def _differences(timm, images, monkeypatch, name, mine, value_of):
    """Return the largest difference for each level, sign and image."""
    signed = ours.OPS[mine].signed and name != 'Color'
    result = []
    for level in range(11):
        op = timm.AugmentOp(name, 1., level, HPARAMS)
        bits = op.level_fn(level, {}) if 'Posterize' in name else (8, )
        for draw in (0., 1.):
            monkeypatch.setattr(random, 'random', lambda: draw)
            value = value_of(level)
            if signed and draw == 1:
                value = -value
            for image in images:
                # Newer versions of Pillow cannot remove all bits.
                want = op(image) if bits[0] else Image.new('RGB', image.size)
                got = ours.OPS[mine].apply(
                    image, value, fillcolor=FILL,
                    resample=Image.Resampling.BICUBIC)
                result.append(np.abs(np.subtract(got, want, dtype=int)).max())
    return result


@pytest.mark.parametrize('name', RAND)
def test_rand_augment_op_at_all_levels(timm, images, monkeypatch, name):
    result = _differences(timm, images, monkeypatch, name, *RAND[name])
    # Truncation after a factor 1 + x may differ by one.
    assert max(result) <= (name.endswith('Increasing') and 'ize' not in name)
    assert np.mean(np.array(result) > 0) < 0.2


def test_rand_augment_has_timms_ops(timm):
    """Compare names; only the identity is not in timm."""
    theirs = {op.name for op in timm.rand_augment_ops(
        transforms=timm._RAND_INCREASING_TRANSFORMS)}
    assert theirs == set(RAND)
    assert {mine for mine, _ in RAND.values()} == set(ours.OPS) - {'identity'}


@pytest.mark.parametrize('area', [.02, .1, .2, .3333])
@pytest.mark.parametrize('aspect', [.3001, 1., 3.3332])
def test_erases_timms_box_for_equal_draws(monkeypatch, area, aspect):
    """Both draw the position as a fraction of the remaining space."""
    theirs = _read('random_erasing')
    height, width, place = 224, 200, .4
    share = dict(uniform=iter([area, np.log(aspect)]))
    monkeypatch.setattr(random, 'random', lambda: 0.)
    monkeypatch.setattr(
        random, 'uniform', lambda low, high: next(share['uniform']))
    monkeypatch.setattr(
        random, 'randint', lambda low, high: int(place * high))
    frame = torch.ones(3, height, width)
    try:
        theirs.RandomErasing(1., device='cpu')(frame)
    except StopIteration:
        # timm draws again if the box does not fit.
        assert area > .3 and (aspect > 3 or aspect < 1)
        return
    erase = TRANSFORMS.build(dict(type='RandomErasing', erase_prob=1.))
    draws = iter([np.log(aspect), area])
    monkeypatch.setattr(np.random, 'rand', lambda: 0.)
    monkeypatch.setattr(np.random, 'uniform', lambda low, high: next(draws))
    monkeypatch.setattr(
        np.random, 'randint', lambda low, high: int(place * high))
    frames = [np.full((height, width, 3), 9, np.uint8) for _ in range(2)]
    for got in erase.transform(dict(imgs=frames))['imgs']:
        assert (got[..., 0] == 128).tolist() == (frame[0] == 0).tolist()


def test_mixes_like_timm_for_equal_draws(monkeypatch):
    mixup = _read('mixup')
    clips, labels = torch.rand(4, 3, 2, 8, 8), torch.tensor([2, 0, 1, 2])
    monkeypatch.setattr(np.random, 'beta', lambda a, b: .3)
    want = mixup.Mixup(mixup_alpha=.4, label_smoothing=0., num_classes=3)
    mixed = clips.clone()
    mixed, target = want(mixed, labels)

    blend = MixupBlending(num_classes=3, alpha=.4)
    monkeypatch.setattr(type(blend.beta), 'sample', lambda self: .3)
    monkeypatch.setattr(torch, 'randperm', lambda n: torch.arange(n).flip(0))
    got, label = blend.do_blending(
        clips[:, None], torch.nn.functional.one_hot(labels, 3))
    assert torch.allclose(got[:, 0], mixed, atol=1e-6)
    assert torch.allclose(label, target, atol=1e-6)
