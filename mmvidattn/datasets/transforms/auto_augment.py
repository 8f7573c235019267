# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""AutoAugment and RandAugment for clips, on Pillow alone."""
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from mmaction.registry import TRANSFORMS
from mmcv.transforms import BaseTransform
from PIL import Image, ImageEnhance, ImageOps

INTERPOLATIONS = {
    'nearest': Image.Resampling.NEAREST,
    'bilinear': Image.Resampling.BILINEAR,
    'bicubic': Image.Resampling.BICUBIC,
}


def _affine(image: Image.Image, matrix: Sequence[float],
            **geometry: Any) -> Image.Image:
    return image.transform(image.size, Image.Transform.AFFINE, matrix,
                           **geometry)


def _shear_x(image: Image.Image, value: float, **geometry: Any):
    return _affine(image, (1, value, 0, 0, 1, 0), **geometry)


def _shear_y(image: Image.Image, value: float, **geometry: Any):
    return _affine(image, (1, 0, 0, value, 1, 0), **geometry)


def _translate_x(image: Image.Image, value: float, **geometry: Any):
    return _affine(image, (1, 0, value * image.width, 0, 1, 0), **geometry)


def _translate_y(image: Image.Image, value: float, **geometry: Any):
    return _affine(image, (1, 0, 0, 0, 1, value * image.height), **geometry)


def _rotate(image: Image.Image, value: float, **geometry: Any):
    return image.rotate(value, **geometry)


def _solarize(image: Image.Image, value: float, **_: Any) -> Image.Image:
    return ImageOps.solarize(image, 256 - value)


def _posterize(image: Image.Image, value: float, **_: Any) -> Image.Image:
    return ImageOps.posterize(image, 8 - round(value))


def _enhance(image: Image.Image, value: float, *, quality: type,
             **_: Any) -> Image.Image:
    return quality(image).enhance(1 + value)


def _plain(image: Image.Image, value: float, *,
           function: Callable[[Image.Image], Image.Image],
           **_: Any) -> Image.Image:
    return function(image)


class Op(NamedTuple):
    """One operation: how it is applied, and its value at full strength.

    Every value of 0 leaves the image as it is; a ``signed`` value goes either
    way. An operation without a value has a ``limit`` of 0.
    """
    apply: Callable[..., Image.Image]
    limit: float = 0.
    signed: bool = False


OPS = {
    'identity': Op(partial(_plain, function=lambda image: image)),
    'auto_contrast': Op(partial(_plain, function=ImageOps.autocontrast)),
    'equalize': Op(partial(_plain, function=ImageOps.equalize)),
    'invert': Op(partial(_plain, function=ImageOps.invert)),
    'rotate': Op(_rotate, 30., True),
    'posterize': Op(_posterize, 4.),
    'solarize': Op(_solarize, 256.),
    'color': Op(partial(_enhance, quality=ImageEnhance.Color), .9, True),
    'contrast': Op(partial(_enhance, quality=ImageEnhance.Contrast), .9, True),
    'brightness': Op(
        partial(_enhance, quality=ImageEnhance.Brightness), .9, True),
    'sharpness': Op(
        partial(_enhance, quality=ImageEnhance.Sharpness), .9, True),
    'shear_x': Op(_shear_x, .3, True),
    'shear_y': Op(_shear_y, .3, True),
    # The paper's 150 pixels of its 331, as a share of the side.
    'translate_x': Op(_translate_x, 150 / 331, True),
    'translate_y': Op(_translate_y, 150 / 331, True),
}

# (operation, probability, level from 0 to 9), twice per sub-policy: Table 9
# of the AutoAugment paper. The levels of operations without a value are 0.
IMAGENET_POLICY = (
    (('posterize', .4, 8), ('rotate', .6, 9)),
    (('solarize', .6, 5), ('auto_contrast', .6, 0)),
    (('equalize', .8, 0), ('equalize', .6, 0)),
    (('posterize', .6, 7), ('posterize', .6, 6)),
    (('equalize', .4, 0), ('solarize', .2, 4)),
    (('equalize', .4, 0), ('rotate', .8, 8)),
    (('solarize', .6, 3), ('equalize', .6, 0)),
    (('posterize', .8, 5), ('equalize', 1., 0)),
    (('rotate', .2, 3), ('solarize', .6, 8)),
    (('equalize', .6, 0), ('posterize', .4, 6)),
    (('rotate', .8, 8), ('color', .4, 0)),
    (('rotate', .4, 9), ('equalize', .6, 0)),
    (('equalize', 0., 0), ('equalize', .8, 0)),
    (('invert', .6, 0), ('equalize', 1., 0)),
    (('color', .6, 4), ('contrast', 1., 8)),
    (('rotate', .8, 8), ('color', 1., 2)),
    (('color', .8, 8), ('solarize', .8, 7)),
    (('sharpness', .4, 7), ('invert', .6, 0)),
    (('shear_x', .6, 5), ('equalize', 1., 0)),
    (('color', .4, 0), ('equalize', .6, 0)),
    (('equalize', .4, 0), ('solarize', .2, 4)),
    (('solarize', .6, 5), ('auto_contrast', .6, 0)),
    (('invert', .6, 0), ('equalize', 1., 0)),
    (('color', .6, 4), ('contrast', 1., 8)),
    (('equalize', .8, 0), ('equalize', .6, 0)),
)


class _ClipAugment(BaseTransform):
    """Draws operations once per sample and applies them to every frame.

    Required and modified key: ``imgs``, a list of ``(H, W, 3)`` uint8 arrays.

    Args:
        fill: Color of the pixels that a geometric operation uncovers, one
            number or three.
        interpolation: ``'nearest'``, ``'bilinear'`` or ``'bicubic'``.
    """

    def __init__(self, fill: int | Sequence[int] = 128,
                 interpolation: str = 'bilinear') -> None:
        if interpolation not in INTERPOLATIONS:
            raise ValueError(f'interpolation must be one of '
                             f'{list(INTERPOLATIONS)}, got {interpolation!r}')
        color = (fill, ) * 3 if isinstance(fill, int) else tuple(fill)
        if len(color) != 3 or not all(
                isinstance(c, int) and 0 <= c <= 255 for c in color):
            raise ValueError('fill must be one or three integers from 0 to '
                             f'255, got {fill!r}')
        self.fill = color
        self.interpolation = interpolation

    def draw(self) -> list[tuple[str, float]]:
        """Draw names of operations and their values for one sample."""
        raise NotImplementedError

    def transform(self, results: dict) -> dict:
        """Apply one draw to all frames of all clips of a sample."""
        for image in results['imgs']:
            if not (isinstance(image, np.ndarray) and image.dtype == np.uint8
                    and image.ndim == 3 and image.shape[2] == 3):
                raise ValueError(
                    f'{type(self).__name__} expects frames of shape (H, W, 3) '
                    'and type uint8, before FormatShape; got '
                    f'{getattr(image, "shape", type(image))} '
                    f'{getattr(image, "dtype", "")}')
        drawn = self.draw()
        if drawn:
            results['imgs'] = [self._apply(x, drawn) for x in results['imgs']]
        return results

    def _apply(self, image: np.ndarray,
               drawn: list[tuple[str, float]]) -> np.ndarray:
        picture = Image.fromarray(image)
        for name, value in drawn:
            picture = OPS[name].apply(
                picture, value, fillcolor=self.fill,
                resample=INTERPOLATIONS[self.interpolation])
        # A copy, because transforms that follow write into the frames.
        return np.array(picture)

    @staticmethod
    def _value(name: str, strength: float) -> float:
        op = OPS[name]
        sign = -1 if op.signed and np.random.rand() < 0.5 else 1
        return sign * strength * op.limit


@TRANSFORMS.register_module()
class AutoAugment(_ClipAugment):
    """The ImageNet policy of `AutoAugment <https://arxiv.org/abs/1805.09501>`_
    for clips.

    One of 25 pairs of operations is drawn per sample, and all of its frames
    get the same operations, signs and magnitudes; only the histograms of
    ``auto_contrast`` and ``equalize`` are each frame's own. No operation
    mirrors the frames and a rotation is at most 30 degrees, so that labels
    such as "left" and "clockwise" stay true.

    Put it after the crop and before ``RandomErasing`` and ``FormatShape``.
    Boxes and keypoints are not moved.

    Differs from the paper: level 0 leaves the image as it is and level 9 is
    the strongest, for every operation; translations, which no pair uses, are
    a share of the side.

    Args:
        fill: Color of the pixels that a geometric operation uncovers, one
            number or three. Defaults to mid gray.
        interpolation: ``'nearest'``, ``'bilinear'`` or ``'bicubic'``.
    """

    def draw(self) -> list[tuple[str, float]]:
        policy = IMAGENET_POLICY[np.random.randint(len(IMAGENET_POLICY))]
        return [(name, self._value(name, level / 9))
                for name, prob, level in policy if np.random.rand() < prob]

    def __repr__(self) -> str:
        return (f'{type(self).__name__}(fill={self.fill}, '
                f'interpolation={self.interpolation!r})')


@TRANSFORMS.register_module()
class RandAugment(_ClipAugment):
    """`RandAugment <https://arxiv.org/abs/1909.13719>`_ for clips.

    A few operations are drawn per sample, uniformly and with replacement, and
    all of its frames get the same operations, signs and magnitudes. As in
    :class:`AutoAugment`, no operation mirrors the frames.

    Put it after the crop and before ``RandomErasing`` and ``FormatShape``.
    Boxes and keypoints are not moved.

    Args:
        num_ops: Operations drawn per sample.
        magnitude: Strength of each operation, from 0 to 10.
        magnitude_std: Standard deviation of normal noise on the magnitude,
            drawn for each operation; the sum is clipped to 0 to 10.
        prob: Probability with which each drawn operation is applied. The
            paper's is 1; timm's is 0.5.
        ops: Names of the operations to draw from. Defaults to the paper's 14,
            which are all of ours but ``invert``.
        fill: Color of the pixels that a geometric operation uncovers, one
            number or three. Defaults to mid gray.
        interpolation: ``'nearest'``, ``'bilinear'`` or ``'bicubic'``.
    """

    def __init__(self,
                 num_ops: int = 2,
                 magnitude: float = 9,
                 magnitude_std: float = 0.0,
                 prob: float = 1.0,
                 ops: Sequence[str] | None = None,
                 fill: int | Sequence[int] = 128,
                 interpolation: str = 'bilinear') -> None:
        super().__init__(fill=fill, interpolation=interpolation)
        ops = [n for n in OPS if n != 'invert'] if ops is None else list(ops)
        unknown = [name for name in ops if name not in OPS]
        if unknown or not ops:
            raise ValueError(f'ops must be of {list(OPS)}, got {ops}')
        if num_ops < 1:
            raise ValueError(f'num_ops must be at least 1, got {num_ops}')
        if not 0 <= magnitude <= 10:
            raise ValueError(f'magnitude must be 0 to 10, got {magnitude}')
        if magnitude_std < 0:
            raise ValueError(
                f'magnitude_std must not be negative, got {magnitude_std}')
        if not 0 <= prob <= 1:
            raise ValueError(f'prob must be 0 to 1, got {prob}')
        self.num_ops = num_ops
        self.magnitude = magnitude
        self.magnitude_std = magnitude_std
        self.prob = prob
        self.ops = ops

    def draw(self) -> list[tuple[str, float]]:
        drawn = []
        for name in np.random.choice(self.ops, self.num_ops).tolist():
            if np.random.rand() >= self.prob:
                continue
            magnitude = np.random.normal(self.magnitude, self.magnitude_std)
            drawn.append((name, self._value(
                name, float(np.clip(magnitude, 0, 10)) / 10)))
        return drawn

    def __repr__(self) -> str:
        return (f'{type(self).__name__}(num_ops={self.num_ops}, '
                f'magnitude={self.magnitude}, '
                f'magnitude_std={self.magnitude_std}, prob={self.prob}, '
                f'ops={self.ops}, fill={self.fill}, '
                f'interpolation={self.interpolation!r})')
