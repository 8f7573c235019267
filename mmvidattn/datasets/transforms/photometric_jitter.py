# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
from typing import Any

import cv2
import numpy as np
from mmaction.registry import TRANSFORMS

from ...utils.arguments import Fraction, NotNegative, check_arguments
from .base_transform import OptionTransform

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
class PhotometricJitter(OptionTransform):
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
        hue: Range of the hue shift in turns, within [-0.5, 0.5].

    Raises:
        ValueError: If a range is not ordered or outside of its limits.
    """

    def __init__(self, prob: Fraction = 0.1, brightness: Range = (0.5, 2),
                 saturation: Range = (0.5, 3), gamma: Range = (0.8, 1.2),
                 hue: tuple[float, float] = (-0.5, 0.5)) -> None:
        for name, (low, high), least, most in (
            ('brightness', brightness, 0, np.inf),
            ('saturation', saturation, 0, np.inf),
            ('gamma', gamma, 0, np.inf), ('hue', hue, -0.5, 0.5)):
            if not least <= low <= high <= most:
                raise ValueError(f'{name} must be a range within [{least}, '
                                 f'{most}], got ({low}, {high})')
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
