# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Random changes of colors."""
from typing import Any

import cv2
import numpy as np
from mmaction.registry import TRANSFORMS
from mmcv.transforms import BaseTransform

from ...utils.arguments import Fraction, NotNegative, check_arguments

Frame = np.ndarray
Range = tuple[NotNegative, NotNegative]


def _brightness(frame: Frame, factor: float) -> Frame:
    return _to_uint8(frame * np.float32(factor))


def _saturation(frame: Frame, factor: float) -> Frame:
    gray = cv2.cvtColor(frame, cv2.COLOR_RGB2GRAY)[..., None]
    gray = gray.astype(np.float32)
    return _to_uint8(gray + np.float32(factor) * (frame - gray))


def _gamma(frame: Frame, power: float) -> Frame:
    table = _to_uint8(255 * (np.arange(256) / 255)**power)
    return table[frame]


def _hue(frame: Frame, turn: float) -> Frame:
    # OpenCV divides the circle into 180 steps.
    steps = round(180 * turn)
    if not steps:
        return frame
    hsv = cv2.cvtColor(frame, cv2.COLOR_RGB2HSV)
    hsv[..., 0] = (hsv[..., 0].astype(int) + steps) % 180
    return cv2.cvtColor(hsv, cv2.COLOR_HSV2RGB)


def _to_uint8(frame: np.ndarray) -> Frame:
    return np.clip(frame + 0.5, 0, 255).astype(np.uint8)


@TRANSFORMS.register_module()
@check_arguments
class PhotometricJitter(BaseTransform):
    """Randomly change brightness, saturation, gamma and hue, like LAPS.

    The changes are applied in this order, each with probability ``prob``. The
    amount of a change is drawn uniformly, once for all frames. mmaction2's
    ``ColorJitter`` always applies all changes, and lacks gamma.

    Required and modified key: imgs, uint8 RGB.

    Args:
        prob: Probability of each change.
        brightness: Range of the factor on all values.
        saturation: Range of the factor on the distance from gray.
        gamma: Range of the exponent on values in [0, 1].
        hue: Range of the hue shift in turns.
    """

    def __init__(self, prob: Fraction = 0.1, brightness: Range = (0.5, 2),
                 saturation: Range = (0.5, 3), gamma: Range = (0.8, 1.2),
                 hue: tuple[float, float] = (-0.5, 0.5)) -> None:
        self.prob = prob
        self.brightness = brightness
        self.saturation = saturation
        self.gamma = gamma
        self.hue = hue

    def transform(self, results: dict[str, Any]) -> dict[str, Any]:
        for change, (low, high) in ((_brightness, self.brightness),
                                    (_saturation, self.saturation),
                                    (_gamma, self.gamma), (_hue, self.hue)):
            if np.random.rand() < self.prob:
                value = np.random.uniform(low, high)
                results['imgs'] = [change(frame, value)
                                   for frame in results['imgs']]
        return results


@TRANSFORMS.register_module()
@check_arguments
class ScenicColorJitter(BaseTransform):
    """Change colors like scenic's ViViT training on Kinetics.

    With probability ``prob``, four changes follow in this order, with one draw
    for all frames: add up to 0.125 of the range to the brightness, multiply
    the saturation by 0.6 to 1.4, multiply the contrast about the mean of each
    frame and channel by 0.6 to 1.4, and shift the hue by up to 0.2 turns.
    Independently,
    the clip then becomes gray with probability ``gray_prob``. mmaction2's
    ``ColorJitter`` multiplies brightness, uses a different order, and lacks
    gray.

    Differs from the released code: values are clipped once, at the end, and
    rounded to bytes.

    Required and modified key: ``imgs``, uint8 RGB.

    Args:
        prob: Probability of the color changes.
        gray_prob: Probability of gray.
    """

    def __init__(self, prob: Fraction = 0.8,
                 gray_prob: Fraction = 0.1) -> None:
        self.prob = prob
        self.gray_prob = gray_prob

    def transform(self, results: dict) -> dict:
        uniform = np.random.uniform
        if np.random.rand() < self.prob:
            drawn = (uniform(-.125, .125), uniform(.6, 1.4), uniform(.6, 1.4),
                     uniform(-.2, .2))
            results['imgs'] = [_jitter(x, *drawn) for x in results['imgs']]
        if np.random.rand() < self.gray_prob:
            results['imgs'] = [
                cv2.cvtColor(cv2.cvtColor(frame, cv2.COLOR_RGB2GRAY),
                             cv2.COLOR_GRAY2RGB) for frame in results['imgs']]
        return results


def _jitter(frame: np.ndarray, brightness: float, saturation: float,
            contrast: float, hue: float) -> np.ndarray:
    frame = frame.astype(np.float32) / 255 + np.float32(brightness)
    # Hue in degrees, saturation in [0, 1].
    hsv = cv2.cvtColor(frame, cv2.COLOR_RGB2HSV)
    hsv[..., 1] = (hsv[..., 1] * saturation).clip(0, 1)
    frame = cv2.cvtColor(hsv, cv2.COLOR_HSV2RGB)
    mean = frame.mean((0, 1))
    frame = (frame - mean) * np.float32(contrast) + mean
    hsv = cv2.cvtColor(frame, cv2.COLOR_RGB2HSV)
    hsv[..., 0] = (hsv[..., 0] + 360 * hue) % 360
    frame = cv2.cvtColor(hsv, cv2.COLOR_HSV2RGB)
    return (255 * frame.clip(0, 1) + 0.5).astype(np.uint8)
