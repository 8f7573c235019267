# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
import cv2
import numpy as np
from mmaction.registry import TRANSFORMS
from mmcv.transforms import BaseTransform

from ...utils.arguments import Fraction, NotNegative, check_arguments


@TRANSFORMS.register_module()
@check_arguments
class ScenicColorJitter(BaseTransform):
    """Change colors as scenic does to train ViViT on Kinetics.

    With probability ``prob``, and by one draw for all frames: brightness is
    added, saturation multiplied, contrast multiplied about the mean of each
    frame and channel, and the hue turned, in this order. Then, of its own,
    the clip becomes gray with probability ``gray_prob``. mmaction2's
    ``ColorJitter`` multiplies brightness, and has its own order and no gray.

    Values are clipped once, at the end, and rounded to bytes, which the
    released code does not do.

    Required and changed key: ``imgs``, uint8 in RGB.

    Args:
        prob: Probability of the changes of color.
        gray_prob: Probability of gray.
        brightness: Largest brightness that is added, of values in [0, 1].
        saturation: Range of the factor of the saturation.
        contrast: Range of the factor of the contrast.
        hue: Largest turn of the hue either way, in whole turns.
    """

    def __init__(self,
                 prob: Fraction = 0.8,
                 gray_prob: Fraction = 0.1,
                 brightness: NotNegative = 0.125,
                 saturation: tuple[NotNegative, NotNegative] = (0.6, 1.4),
                 contrast: tuple[NotNegative, NotNegative] = (0.6, 1.4),
                 hue: float = 0.2) -> None:
        if not 0 <= hue <= 0.5:
            raise ValueError(f'hue must be in [0, 0.5], got {hue}')
        for name, (low, high) in dict(
                saturation=saturation, contrast=contrast).items():
            if low > high:
                raise ValueError(f'{name} must be two numbers in order, got '
                                 f'({low}, {high})')
        self.prob = prob
        self.gray_prob = gray_prob
        self.brightness = brightness
        self.saturation = saturation
        self.contrast = contrast
        self.hue = hue

    def transform(self, results: dict) -> dict:
        """Apply one draw to all frames."""
        uniform = np.random.uniform
        if np.random.rand() < self.prob:
            drawn = (uniform(-self.brightness, self.brightness),
                     uniform(*self.saturation), uniform(*self.contrast),
                     uniform(-self.hue, self.hue))
            results['imgs'] = [_jitter(x, *drawn) for x in results['imgs']]
        if np.random.rand() < self.gray_prob:
            results['imgs'] = [
                cv2.cvtColor(
                    cv2.cvtColor(frame, cv2.COLOR_RGB2GRAY),
                    cv2.COLOR_GRAY2RGB) for frame in results['imgs']
            ]
        return results

    def __repr__(self) -> str:
        return (f'{type(self).__name__}(prob={self.prob}, '
                f'gray_prob={self.gray_prob}, brightness={self.brightness}, '
                f'saturation={self.saturation}, contrast={self.contrast}, '
                f'hue={self.hue})')


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
