# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Names and capabilities of the processors of this machine."""
import os
import platform
from pathlib import Path

import torch

from .torch_private import has_bfloat16_instructions

CPUINFO = Path('/proc/cpuinfo')
VENDORS = {'AuthenticAMD': 'AMD', 'GenuineIntel': 'Intel'}
# Variables that limit the instructions of torch, oneDNN and MKL. MKL ignores
# its variable on AMD processors.
LIMITS = ('ATEN_CPU_CAPABILITY', 'ONEDNN_MAX_CPU_ISA',
          'MKL_ENABLE_INSTRUCTIONS')
# Values of ONEDNN_MAX_CPU_ISA that hide bfloat16 instructions from oneDNN.
ISAS_WITHOUT_BFLOAT16 = {
    'SSE41', 'AVX', 'AVX2', 'AVX2_VNNI', 'AVX2_VNNI_2', 'AVX512_CORE',
    'AVX512_CORE_VNNI'}


def cpuinfo(key: str) -> str | None:
    """Return a field of Linux's first processor, or None if it is missing."""
    if CPUINFO.exists():
        for line in CPUINFO.read_text().splitlines():
            name, _, value = line.partition(':')
            if name.strip() == key:
                return value.strip()
    return None


def processor_name(device: torch.device | str = 'cpu') -> str:
    """Return the name of a device, with the model numbers of an x86 CPU.

    Virtual machines often hide the model name, but not these numbers.
    """
    device = torch.device(device)
    if device.type == 'cuda':
        return torch.cuda.get_device_name(device)
    name = (cpuinfo('model name') or platform.processor()
            or platform.machine())
    family, model = cpuinfo('cpu family'), cpuinfo('model')
    return f'{name} (family {family} model {model})' if family else name


def capability(device: torch.device | str = 'cpu') -> str | None:
    """Return the key of a device in the table of defaults.

    Returns:
        Vendor, instructions of torch and bfloat16 support of a CPU, such as
        'AMD AVX512 bfloat16'; compute capability of a GPU, such as
        'CUDA 9.0'; None for other devices.
    """
    device = torch.device(device)
    if device.type == 'cuda':
        return 'CUDA {}.{}'.format(*torch.cuda.get_device_capability(device))
    if device.type != 'cpu':
        return None
    identifier = cpuinfo('vendor_id') or platform.processor()
    vendor = next((name for key, name in VENDORS.items() if key in identifier),
                  platform.machine())
    words = [vendor, torch.backends.cpu.get_cpu_capability()]
    return ' '.join(words + ['bfloat16'] * has_bfloat16_units())


def is_emulated() -> bool:
    """Return True if a variable limits the instructions of this CPU.

    Measurements then differ from measurements on such a processor.
    """
    return any(os.environ.get(name) for name in LIMITS)


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
    # Old versions of torch cannot query these instructions.
    flags = (cpuinfo('flags') or '').split()
    return (has_bfloat16_instructions() or 'avx512_bf16' in flags
            or 'amx_bf16' in flags)
