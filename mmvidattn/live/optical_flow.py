# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Optical flow between images, in bytes as recognizers of flow read it."""
from collections.abc import Sequence

import cv2
import numpy as np

FLOWS = 'dis', 'tvl1', 'farneback'


def quantize_flow(flow: np.ndarray, bound: float) -> np.ndarray:
    """Flow in pixels ``(H, W, 2)`` to bytes; 128 is no motion."""
    scaled = np.rint((flow.clip(-bound, bound) + bound) * (255 / (2 * bound)))
    return scaled.astype(np.uint8)


class OpticalFlow:
    """Estimates the flow between consecutive images.

    Args:
        method: 'dis' (fast), 'tvl1' (that of published features; in
            opencv-contrib) or 'farneback'. OpenCV's TV-L1 of the CPU has the
            settings of the one for CUDA, which denseflow takes, and a median
            filter as well.
        side: Short side of the images, in pixels; they are resized to it.
        bound: Pixels of flow that become 0 or 255.

    Raises:
        ValueError: If this OpenCV does not have the method, or an argument is
            out of range.
    """

    def __init__(self, method: str = 'dis', side: int = 180,
                 bound: float = 20.) -> None:
        if method not in FLOWS:
            raise ValueError(f'flow must be one of {", ".join(FLOWS)}, got '
                             f'{method!r}')
        for name, value in ('flow_side', side), ('bound', bound):
            if not value > 0:
                raise ValueError(f'{name} must be above 0, got {value}')
        self.side = side
        self.bound = bound
        if method == 'dis':
            self._estimator = cv2.DISOpticalFlow_create(
                cv2.DISOPTICAL_FLOW_PRESET_MEDIUM)
        elif method == 'farneback':
            self._estimator = cv2.FarnebackOpticalFlow_create()
        elif hasattr(cv2, 'optflow'):
            self._estimator = cv2.optflow.DualTVL1OpticalFlow_create()
        else:
            raise ValueError('flow tvl1 is in opencv-contrib: pip install '
                             'opencv-contrib-python')

    def __call__(self, images: Sequence[np.ndarray]) -> list[np.ndarray]:
        """n + 1 RGB images ``(H, W, 3)`` to n flow fields ``(h, w, 2)``."""
        scale = self.side / min(images[0].shape[:2])
        gray = [
            cv2.resize(
                cv2.cvtColor(image, cv2.COLOR_RGB2GRAY), None, fx=scale,
                fy=scale, interpolation=cv2.INTER_AREA) for image in images
        ]
        return [
            quantize_flow(self._estimator.calc(a, b, None), self.bound)
            for a, b in zip(gray, gray[1:])
        ]
