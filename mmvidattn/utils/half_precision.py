# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Computation in bfloat16, and in float32 where bfloat16 is slow on a CPU."""
import copy
import functools
import os
import platform
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import nn

from ..ops.torch_private import has_bfloat16_instructions
from .printable import echo

VARIABLE = 'MMVIDATTN_BFLOAT16'
# Values of ONEDNN_MAX_CPU_ISA that hide bfloat16 instructions from oneDNN.
ISAS_WITHOUT_BFLOAT16 = {
    'SSE41', 'AVX', 'AVX2', 'AVX2_VNNI', 'AVX2_VNNI_2', 'AVX512_CORE',
    'AVX512_CORE_VNNI'}


def has_bfloat16_units() -> bool:
    """Return True if products in bfloat16 run on units of this processor.

    Without AVX512_BF16, AMX or ARM's BF16, torch converts every number, and
    bfloat16 is slower than float32. The result depends on the variables that
    limit torch's instructions, ``ATEN_CPU_CAPABILITY`` and
    ``ONEDNN_MAX_CPU_ISA``.
    """
    isa = os.environ.get('ONEDNN_MAX_CPU_ISA', '').upper()
    capability = torch.backends.cpu.get_cpu_capability()
    is_x86 = platform.machine() in ('x86_64', 'AMD64')
    if isa in ISAS_WITHOUT_BFLOAT16 or is_x86 and 'AVX512' not in capability:
        return False
    return has_bfloat16_instructions()


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

    Args:
        device: Device of the model.
        enabled: Value of the option ``--amp``. Defaults to True.
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
