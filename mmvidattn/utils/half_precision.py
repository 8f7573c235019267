# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Computation in bfloat16, and in float32 where bfloat16 is slow on a CPU."""
import copy
import functools
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import nn

from ..ops.torch_private import has_bfloat16_instructions
from .printable import echo

VARIABLE = 'MMVIDATTN_BFLOAT16'


def is_bfloat16_slow(device: torch.device | str) -> bool:
    """Return True if float32 should replace bfloat16 on a device.

    This applies to a CPU without AVX512_BF16, AMX or ARM's BF16, on which
    torch converts every number, unless the environment variable
    ``MMVIDATTN_BFLOAT16`` is ``force``.

    Raises:
        ValueError: If the variable has another value.
    """
    value = os.environ.get(VARIABLE, '')
    if value not in ('', 'force'):
        raise ValueError(f"{VARIABLE} must be 'force' or unset, got {value!r}")
    return (not value and torch.device(device).type == 'cpu'
            and not has_bfloat16_instructions())


def fallback_message(subject: str) -> str:
    """Return the line that reports the fallback of a part to float32."""
    return (f'{subject} computes in float32: this processor has no bfloat16 '
            'units, so bfloat16 would be slower. Override with '
            f'{VARIABLE}=force.')


@functools.cache
def _report(subject: str) -> None:
    echo(fallback_message(subject), file=sys.stderr)


@contextmanager
def amp(device: torch.device | str, enabled: bool = True) -> Iterator[None]:
    """Compute in bfloat16 within a thread, with ``torch.autocast``.

    The weights, the states of streams and the probabilities stay in float32.
    On a CPU where bfloat16 is slow, nothing changes, and a line on stderr
    reports this once.
    """
    if enabled and is_bfloat16_slow(device):
        _report('--amp')
        enabled = False
    with torch.autocast(torch.device(device).type, torch.bfloat16,
                        enabled=enabled):
        yield


def without_slow_bfloat16(model: nn.Module) -> nn.Module:
    """Return a float32 copy of a bfloat16 model where bfloat16 is slow.

    Elsewhere, and for a model in another dtype, return the model itself. The
    first copy of a process is reported on stderr.
    """
    first = next((x for x in model.parameters() if x.is_floating_point()),
                 None)
    if (first is None or first.dtype != torch.bfloat16
            or not is_bfloat16_slow(first.device)):
        return model
    _report('a bfloat16 stream')
    return copy.deepcopy(model).float()
