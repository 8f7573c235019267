# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""AutoAugment and RandAugment for clips, based on Pillow."""
from collections.abc import Callable, Sequence
from typing import Any, Literal, NamedTuple

import numpy as np
from mmaction.registry import TRANSFORMS
from mmcv.transforms import BaseTransform
from PIL import Image, ImageEnhance, ImageOps

from ...utils.arguments import Count, Fraction, NotNegative, check_arguments

Interpolation = Literal['nearest', 'bilinear', 'bicubic', 'random']
# Color of uncovered pixels.
GRAY = 128, 128, 128


class Op(NamedTuple):
    """Operation and its value at full strength.

    ``apply(image, value, fillcolor=..., resample=...)`` returns the changed
    image. A value of 0 does not change the image. A ``signed`` value can have
    either sign. An operation without a value has ``limit=0``.
    """
    apply: Callable[..., Image.Image]
    limit: float = 0.
    signed: bool = False


def _affine(limit: float, matrix: Callable) -> Op:
    """Operation that moves pixels.

    Args:
        limit: Value at full strength.
        matrix: Function of the image and the value that returns the six
            numbers of Pillow's ``Image.Transform.AFFINE``.
    """
    return Op(lambda image, value, **geometry: image.transform(
        image.size, Image.Transform.AFFINE, matrix(image, value),
        **geometry), limit, True)


def _enhance(quality: type) -> Op:
    """Operation that changes a quality of ``PIL.ImageEnhance``."""
    return Op(lambda image, value, **_: quality(image).enhance(1 + value),
              .9, True)


def _plain(function: Callable[[Image.Image], Image.Image]) -> Op:
    """Operation without a value."""
    return Op(lambda image, value, **_: function(image))


def _solarize_add(image: Image.Image, value: float, **_: Any) -> Image.Image:
    table = [min(v + int(value), 255) if v < 128 else v for v in range(256)]
    return image.point(table * 3)


def _posterize(image: Image.Image, value: float, **_: Any) -> Image.Image:
    # ImageOps.posterize cannot remove all bits.
    kept = 256 - (1 << round(value))
    return image.point([v & kept for v in range(256)] * 3)


OPS = {
    'identity': _plain(lambda image: image),
    'auto_contrast': _plain(ImageOps.autocontrast),
    'equalize': _plain(ImageOps.equalize),
    'invert': _plain(ImageOps.invert),
    'rotate': Op(lambda image, value, **geometry: image.rotate(
        value, **geometry), 30., True),
    'posterize': Op(_posterize, 4.),
    'solarize': Op(lambda image, value, **_: ImageOps.solarize(
        image, 256 - value), 256.),
    'solarize_add': Op(_solarize_add, 110.),
    'color': _enhance(ImageEnhance.Color),
    'contrast': _enhance(ImageEnhance.Contrast),
    'brightness': _enhance(ImageEnhance.Brightness),
    'sharpness': _enhance(ImageEnhance.Sharpness),
    'shear_x': _affine(.3, lambda _, value: (1, value, 0, 0, 1, 0)),
    'shear_y': _affine(.3, lambda _, value: (1, 0, 0, value, 1, 0)),
    # Relative to the side of the image; 150 of 331 pixels in the paper.
    'translate_x': _affine(150 / 331, lambda image, value: (
        1, 0, value * image.width, 0, 1, 0)),
    'translate_y': _affine(150 / 331, lambda image, value: (
        1, 0, 0, 0, 1, value * image.height)),
}

# Operations of the RandAugment paper.
RAND_OPS = [name for name in OPS if name not in ('invert', 'solarize_add')]

# timm's policy "v0", from EfficientNet's TPU code: 25 pairs of (operation,
# probability, level from 0 to 10). Operations without a value have level 0.
V0_POLICY = (
    (('equalize', .8, 0), ('shear_y', .8, 4)),
    (('color', .4, 9), ('equalize', .6, 0)),
    (('color', .4, 1), ('rotate', .6, 8)),
    (('solarize', .8, 3), ('equalize', .4, 0)),
    (('solarize', .4, 2), ('solarize', .6, 2)),
    (('color', .2, 0), ('equalize', .8, 0)),
    (('equalize', .4, 0), ('solarize_add', .8, 3)),
    (('shear_x', .2, 9), ('rotate', .6, 8)),
    (('color', .6, 1), ('equalize', 1., 0)),
    (('invert', .4, 0), ('rotate', .6, 0)),
    (('equalize', 1., 0), ('shear_y', .6, 3)),
    (('color', .4, 7), ('equalize', .6, 0)),
    (('posterize', .4, 6), ('auto_contrast', .4, 0)),
    (('solarize', .6, 8), ('color', .6, 9)),
    (('solarize', .2, 4), ('rotate', .8, 9)),
    (('rotate', 1., 7), ('translate_y', .8, 9)),
    (('shear_x', 0., 0), ('solarize', .8, 4)),
    (('shear_y', .8, 0), ('color', .6, 4)),
    (('color', 1., 0), ('rotate', .6, 2)),
    (('equalize', .8, 0), ('equalize', 0., 0)),
    (('equalize', 1., 0), ('auto_contrast', .6, 0)),
    (('shear_y', .4, 7), ('solarize_add', .6, 7)),
    (('posterize', .8, 2), ('solarize', .6, 10)),
    (('solarize', .6, 8), ('equalize', .6, 0)),
    (('color', .8, 6), ('rotate', .4, 5)),
)

# Value of each operation by level of "v0".
V0_VALUES: dict[str, Callable[[int], float]] = {
    'rotate': lambda level: 3. * level,
    'shear_x': lambda level: 0.03 * level,
    'shear_y': lambda level: 0.03 * level,
    # 0.045 * level would round differently.
    'translate_y': lambda level: level / 10 * 0.45,
    # Level 0 is nearly gray.
    'color': lambda level: 0.18 * level + 0.1 - 1,
    # Lower levels change more, because level raises the threshold and the
    # number of kept bits.
    'solarize': lambda level: 256 - int(25.6 * level),
    'posterize': lambda level: 8 - int(0.4 * level),
    'solarize_add': lambda level: int(11. * level),
}


def _with_sign(name: str, value: float) -> float:
    """Draw the sign of a value, if the operation is signed."""
    negative = OPS[name].signed and np.random.rand() < 0.5
    return -value if negative else value


def check_frames(transform: BaseTransform, frames: Sequence) -> None:
    """Raise a ``ValueError`` unless frames are RGB, uint8 [H, W, 3]."""
    for frame in frames:
        if not (isinstance(frame, np.ndarray) and frame.dtype == np.uint8
                and frame.ndim == 3 and frame.shape[2] == 3):
            raise ValueError(
                f'{type(transform).__name__} needs frames of shape (H, W, 3) '
                'and type uint8, before FormatShape; got '
                f'{getattr(frame, "shape", type(frame))} '
                f'{getattr(frame, "dtype", "")}')


class _ClipAugment(BaseTransform):
    """Base class: draw operations once per sample for all of its frames.

    Required and modified key: ``imgs``, a list of ``(H, W, 3)`` uint8 arrays.
    """

    def __init__(self, interpolation: Interpolation) -> None:
        self.interpolation = interpolation

    def draw(self) -> list[tuple[str, float]]:
        """Draw names of operations and their values for one sample."""
        raise NotImplementedError

    def transform(self, results: dict) -> dict:
        """Apply one draw to all frames of all clips of a sample."""
        check_frames(self, results['imgs'])
        drawn = self.draw()
        if drawn:
            results['imgs'] = [self._apply(x, drawn) for x in results['imgs']]
        return results

    def _apply(self, image: np.ndarray,
               drawn: list[tuple[str, float]]) -> np.ndarray:
        picture = Image.fromarray(image)
        for name, value in drawn:
            interpolation = self.interpolation
            if interpolation == 'random':
                interpolation = np.random.choice(['bilinear', 'bicubic'])
            picture = OPS[name].apply(
                picture, value, fillcolor=GRAY,
                resample=Image.Resampling[interpolation.upper()])
        # A copy, because later transforms write into the frames.
        return np.array(picture)


@TRANSFORMS.register_module()
@check_arguments
class AutoAugment(_ClipAugment):
    """`AutoAugment <https://arxiv.org/abs/1805.09501>`_ for clips.

    A pair of operations, out of 25, is drawn per sample. All frames get the
    same operations, signs and magnitudes, but ``auto_contrast`` and
    ``equalize`` use the histogram of each frame. No operation mirrors the
    frames, and rotations are at most 30 degrees, so labels such as "left" and
    "clockwise" stay true.

    Use it before ``RandomErasing`` and ``FormatShape``. It can follow or
    precede the crop. It precedes the crop in the recipes of the linear video
    transformer and XViT; the crop can then remove uncovered pixels. Boxes and
    keypoints are not moved.

    ``policy='v0'`` is timm's policy of this name, with the same values. A
    higher level is not always stronger: color at level 0 is nearly gray,
    solarize is strongest at low levels, and posterize at level 2 makes the
    clip black. timm's ``translate_const`` has no effect on this policy; its
    only translation is relative to the height.

    Args:
        policy: ``'v0'``.
        interpolation: ``'nearest'``, ``'bilinear'``, ``'bicubic'``, or
            ``'random'``, which draws bilinear or bicubic for each frame like
            timm. Defaults to ``'bilinear'``.
    """

    def __init__(self, policy: Literal['v0'],
                 interpolation: Interpolation = 'bilinear') -> None:
        super().__init__(interpolation)
        self.policy = policy

    def draw(self) -> list[tuple[str, float]]:
        pair = V0_POLICY[np.random.randint(len(V0_POLICY))]
        return [(name, self._value(name, level)) for name, prob, level in pair
                if np.random.rand() < prob]

    def _value(self, name: str, level: int) -> float:
        value = V0_VALUES[name](level) if name in V0_VALUES else 0.
        # In "v0", color has no random sign.
        return value if name == 'color' else _with_sign(name, value)


@TRANSFORMS.register_module()
@check_arguments
class RandAugment(_ClipAugment):
    """`RandAugment <https://arxiv.org/abs/1909.13719>`_ for clips.

    ``num_ops`` of the paper's 14 operations are drawn per sample, uniformly
    and with replacement. All of its frames get the same operations, signs and
    magnitudes. No operation mirrors the frames.

    Use it after the crop, and before ``RandomErasing`` and ``FormatShape``.
    Boxes and keypoints are not moved.

    Args:
        num_ops: Number of operations per sample. Defaults to 2.
        magnitude: Strength of each operation, from 0 to 10. Defaults to 9.
        magnitude_std: Standard deviation of normal noise on the magnitude of
            each operation. The sum is clipped to [0, 10]. Defaults to 0.
        prob: Probability that a drawn operation is applied. Defaults to 1 as
            in the paper; timm uses 0.5.
        interpolation: Option of :class:`AutoAugment`.
    """

    def __init__(self, num_ops: Count = 2, magnitude: NotNegative = 9,
                 magnitude_std: NotNegative = 0.0, prob: Fraction = 1.0,
                 interpolation: Interpolation = 'bilinear') -> None:
        super().__init__(interpolation)
        if magnitude > 10:
            raise ValueError(f'magnitude must be in [0, 10], got {magnitude}')
        self.num_ops = num_ops
        self.magnitude = magnitude
        self.magnitude_std = magnitude_std
        self.prob = prob

    def draw(self) -> list[tuple[str, float]]:
        drawn = []
        for name in np.random.choice(RAND_OPS, self.num_ops).tolist():
            if np.random.rand() >= self.prob:
                continue
            magnitude = np.random.normal(self.magnitude, self.magnitude_std)
            strength = float(np.clip(magnitude, 0, 10)) / 10
            drawn.append((name, _with_sign(name, strength * OPS[name].limit)))
        return drawn
