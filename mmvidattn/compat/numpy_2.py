# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Workarounds for parts of mmaction2 that fail with numpy 2."""
import sys

from .registry import Overlay, call_after_import, replace, workaround


@workaround()
def run_on_numpy_2() -> None:
    """Add the names that numpy dropped to the modules that need them.

    Pose transforms, ``frame_extract`` and the metrics of ActivityNet, AVA and
    retrieval use such names; MultiSports' metric converts an array of one
    element to an int. numpy itself is not changed.

    Symptom: `np.Inf was removed in the NumPy 2.0 release`, and similar errors
    Until: mmaction2 supports numpy 2
    """
    import numpy as np

    names = dict(
        Inf=np.inf,
        NAN=np.nan,
        trapz=getattr(np, 'trapezoid', None),
        in1d=lambda *args, **kwargs: np.isin(*args, **kwargs).ravel())
    names = {name: value for name, value in names.items()
             if not hasattr(np, name)}

    if not names:
        return
    changes = dict.fromkeys(
        ('datasets.transforms.pose_transforms',
         'evaluation.functional.accuracy',
         'evaluation.functional.ava_evaluation.metrics',
         'evaluation.metrics.multimodal_metric', 'utils.misc'),
        ('np', Overlay(np, **names)))
    changes['evaluation.functional.multisports_utils'] = (
        'int', lambda value: int(np.asarray(value).item()))

    for module, change in changes.items():
        module = f'mmaction.{module}'
        call_after_import(module, lambda module=module, change=change: replace(
            sys.modules[module], *change))


@workaround(after=['mmaction.datasets'])
def shift_hue_in_range() -> None:
    """Shift hues in 16 bits.

    ``ColorJitter.adjust_hue`` adds a negative int to uint8 pixels, which
    numpy 2 refuses. (A positive one overflows without an error.)

    Symptom: `OverflowError` in half of the calls of `ColorJitter`
    Until: mmaction2 supports numpy 2
    """
    import cv2
    import numpy as np
    from mmaction.datasets.transforms import ColorJitter
    if int(np.__version__.split('.')[0]) < 2:
        return

    def jitter_hue(img: np.ndarray, factor: float) -> np.ndarray:
        img = np.clip(img, 0, 255).astype(np.uint8)
        hsv = cv2.cvtColor(img, cv2.COLOR_RGB2HSV)
        hue = hsv[..., 0].astype(np.int16) + int(factor * 255)
        hsv[..., 0] = hue % 180
        return cv2.cvtColor(hsv, cv2.COLOR_HSV2RGB).astype(np.float32)

    replace(ColorJitter, 'adjust_hue', staticmethod(jitter_hue))
