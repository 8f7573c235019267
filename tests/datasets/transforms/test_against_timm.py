# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Compare augmentations of the released recipes with timm.

timm's file is loaded individually, because ``import timm`` needs
torchvision; ``pip install --no-deps timm`` is enough.
"""
import importlib.util
import random
from pathlib import Path

import numpy as np
import pytest
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


@pytest.fixture(scope='module')
def timm():
    result = importlib.util.find_spec('timm')
    if result is None:
        pytest.skip('timm is not installed: pip install --no-deps timm')
    path = Path(result.origin).parent / 'data/auto_augment.py'
    spec = importlib.util.spec_from_file_location('timm_auto_augment', path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope='module')
def images():
    rng = np.random.default_rng(0)
    return [Image.fromarray(rng.integers(low, low + width, (32, 40, 3),
                                         np.uint8))
            for low, width in ((0, 256), (40, 90), (90, 30), (120, 8))]


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


@pytest.mark.parametrize('name', ['original', 'v0'])
def test_auto_augment_has_timms_policies(timm, name):
    names = {theirs: mine for theirs, (mine, _) in RAND.items()} | dict(
        PosterizeOriginal='posterize', Posterize='posterize',
        Solarize='solarize', Color='color', Contrast='contrast',
        Sharpness='sharpness')
    levelless = 'auto_contrast', 'equalize', 'invert'
    theirs = getattr(timm, f'auto_augment_policy_{name}')(HPARAMS)
    assert (ours.V0_POLICY if name == 'v0' else ours.IMAGENET_POLICY) == tuple(
        tuple((names[op.name], op.prob,
               0 if names[op.name] in levelless else op.magnitude)
              for op in pair) for pair in theirs)


def test_rand_augment_has_timms_ops(timm):
    """Compare names; only the identity is not in timm."""
    theirs = {op.name for op in timm.rand_augment_ops(
        transforms=timm._RAND_INCREASING_TRANSFORMS)}
    assert theirs == set(RAND)
    assert {mine for mine, _ in RAND.values()} == set(ours.OPS) - {'identity'}
