# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Metadata of exported files about the preparation of frames."""
import json
from typing import Any

from torch import nn

from ..apis.video_clips import test_steps

# Pipeline steps that do not change frames, in addition to steps that open and
# decode files.
PLAIN_STEPS = 'FormatShape', 'PackActionInputs'


def frame_steps(cfg: Any) -> list[dict[str, Any]]:
    """Return the steps that choose and change frames, if it decodes videos."""
    try:
        steps = test_steps(cfg)
    except ValueError:
        return []
    return [step for step in steps.sample + steps.rest
            if step['type'] not in PLAIN_STEPS]


def describe_frames(model: nn.Module, inside: bool, **preprocessing: Any
                    ) -> dict[str, str]:
    """Return the metadata of frames, which are normalized ``inside``."""
    normalization = dict(inside=inside)
    for name in 'mean', 'std':
        x = getattr(model.data_preprocessor, name, None)
        normalization[name] = None if x is None else x.flatten().tolist()
    return dict(
        normalization=json.dumps(normalization),
        preprocessing=json.dumps(dict(
            preprocessing, steps=frame_steps(model.cfg)), default=str))
