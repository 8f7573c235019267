# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Fallback to float32 where bfloat16 is slow on a CPU."""
import copy
import functools
import logging
import os

import torch
from mmengine.logging import print_log
from torch import nn

from ..ops.processor import has_bfloat16_units

VARIABLE = 'MMVIDATTN_BFLOAT16'


def is_bfloat16_slow(device: torch.device | str) -> bool:
    """Return True if float32 should replace bfloat16 on a device.

    This applies to a CPU without bfloat16 units, unless the environment
    variable ``MMVIDATTN_BFLOAT16`` is ``force``.

    Raises:
        ValueError: If the variable has another value.
    """
    value = os.environ.get(VARIABLE, '')
    if value not in ('', 'force'):
        raise ValueError(f"{VARIABLE} must be 'force' or unset, got {value!r}")
    return (not value and torch.device(device).type == 'cpu'
            and not has_bfloat16_units())


def fallback_message(subject: str, override: str) -> str:
    """Return the line that reports the fallback.

    Args:
        subject: Name of the part that was configured with bfloat16.
        override: Option or variable that forces bfloat16.
    """
    return (f'{subject} computes in float32: this processor has no bfloat16 '
            f'units, so bfloat16 would be slower. Override with {override}.')


@functools.cache
def _report_stream() -> None:
    print_log(fallback_message('a bfloat16 stream', f'{VARIABLE}=force'),
              'current', logging.WARNING)


def without_slow_bfloat16(model: nn.Module) -> nn.Module:
    """Return a float32 copy of a bfloat16 model where bfloat16 is slow.

    Elsewhere, and for a model in another dtype, return the model itself. The
    first copy of a process is logged.
    """
    first = next((x for x in model.parameters() if x.is_floating_point()),
                 None)
    if (first is None or first.dtype != torch.bfloat16
            or not is_bfloat16_slow(first.device)):
        return model
    _report_stream()
    return copy.deepcopy(model).float()
