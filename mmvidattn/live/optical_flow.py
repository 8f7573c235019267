# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Optical flow between images, converted to bytes for flow networks."""
from collections.abc import Sequence
from typing import Literal

import cv2
import numpy as np

FLOWS = 'dis', 'tvl1', 'farneback'
FlowMethod = Literal[FLOWS]


def quantize_flow(flow: np.ndarray, bound: float) -> np.ndarray:
    """Convert flow in pixels ``(H, W, 2)`` to bytes; 128 means zero."""
    scaled = np.rint((flow.clip(-bound, bound) + bound) * (255 / (2 * bound)))
    return scaled.astype(np.uint8)


class OpticalFlow:
    """Estimator of the flow between consecutive images.

    Args:
        method: 'dis' (fast), 'tvl1' (used for published features; needs
            opencv-contrib) or 'farneback'. OpenCV's TV-L1 for the CPU has the
            settings of the CUDA version that denseflow uses, and also a
            median filter.
        side: Short side in pixels to which images are resized.
        bound: Flow in pixels that is mapped to 0 (negative) or 255 (positive).

    Raises:
        ValueError: If this OpenCV lacks the method.
    """

    def __init__(self, method: FlowMethod = 'dis', side: float = 180,
                 bound: float = 20.) -> None:
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
            raise ValueError("flow='tvl1' needs opencv-contrib: pip install "
                             'opencv-contrib-python')

    def __call__(self, images: Sequence[np.ndarray]) -> list[np.ndarray]:
        """Convert n + 1 RGB images ``(H, W, 3)`` to n flows ``(h, w, 2)``."""
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
