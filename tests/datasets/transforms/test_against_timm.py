# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Augmentations that the released recipes have from timm, against timm.

Its files are read one by one: ``import timm`` takes torchvision as well,
which these do not. ``pip install --no-deps timm`` is enough. Without timm
test_auto_augment_v0.py holds AutoAugment to the values of its table.
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


# The ops of timm's RandAugment that grow with the level, and where its limits
# are other than those of the paper, which are ours, the value they stand for.
RAND = dict(
    AutoContrast=('auto_contrast', _share('auto_contrast')),
    Equalize=('equalize', _share('equalize')),
    Invert=('invert', _share('invert')),
    Rotate=('rotate', _share('rotate')),
    SolarizeIncreasing=('solarize', _share('solarize')),
    SolarizeAdd=('solarize_add', _share('solarize_add')),
    ColorIncreasing=('color', _share('color')),
    ContrastIncreasing=('contrast', _share('contrast')),
    BrightnessIncreasing=('brightness', _share('brightness')),
    SharpnessIncreasing=('sharpness', _share('sharpness')),
    ShearX=('shear_x', _share('shear_x')),
    ShearY=('shear_y', _share('shear_y')),
    # It keeps 4 bits at level 0, and none at 10.
    PosterizeIncreasing=('posterize', lambda level: 4 + int(level / 10 * 4)),
    # 0.45 of the side; the paper has 150 / 331.
    TranslateXRel=('translate_x', lambda level: level / 10 * .45),
    TranslateYRel=('translate_y', lambda level: level / 10 * .45))


def _read(name):
    found = importlib.util.find_spec('timm')
    if found is None:
        pytest.skip('timm is not installed: pip install --no-deps timm')
    path = Path(found.origin).parent / 'data' / f'{name}.py'
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
    """Largest difference of each level, sign and image."""
    signed = ours.OPS[mine].signed and name != 'Color'
    found = []
    for level in range(11):
        op = timm.AugmentOp(name, 1., level, HPARAMS)
        bits = op.level_fn(level, {}) if 'Posterize' in name else (8, )
        for draw in (0., 1.):
            monkeypatch.setattr(random, 'random', lambda: draw)
            value = value_of(level)
            if signed and draw == 1:
                value = -value
            for image in images:
                # Newer versions of Pillow refuse to keep no bit.
                want = op(image) if bits[0] else Image.new('RGB', image.size)
                got = ours.OPS[mine].apply(
                    image, value, fillcolor=FILL,
                    resample=Image.Resampling.BICUBIC)
                found.append(np.abs(np.subtract(got, want, dtype=int)).max())
    return found


@pytest.mark.parametrize('name', RAND)
def test_rand_augment_op_at_all_levels(timm, images, monkeypatch, name):
    found = _differences(timm, images, monkeypatch, name, *RAND[name])
    # A factor 1 + x may be truncated either way.
    assert max(found) <= (name.endswith('Increasing') and 'ize' not in name)
    assert np.mean(np.array(found) > 0) < 0.2


def test_rand_augment_draws_from_these(timm):
    """All but identity, which timm has not."""
    theirs = {op.name for op in timm.rand_augment_ops(
        transforms=timm._RAND_INCREASING_TRANSFORMS)}
    assert theirs == set(RAND)
    assert {mine for mine, _ in RAND.values()} == set(ours.OPS) - {'identity'}


@pytest.mark.parametrize('area', [.02, .1, .2, .3333])
@pytest.mark.parametrize('aspect', [.3001, 1., 3.3332])
def test_erases_the_box_that_the_draws_mean(monkeypatch, area, aspect):
    """Where it fits. Both places are drawn as a share of what is left."""
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
        # It draws again where the box does not fit.
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


def test_mixes_as_timm_given_its_partner_and_share(monkeypatch):
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
