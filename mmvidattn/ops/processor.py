# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""The processor of this machine."""
import platform
from pathlib import Path

CPUINFO = Path('/proc/cpuinfo')


def cpuinfo(key: str) -> str | None:
    """Return a field of Linux's first processor, None if there is none."""
    if CPUINFO.exists():
        for line in CPUINFO.read_text().splitlines():
            name, _, value = line.partition(':')
            if name.strip() == key:
                return value.strip()
    return None


# MKL, torch's library for float32, takes twice as long on AMD's processors.
IS_AMD = 'AuthenticAMD' in (cpuinfo('vendor_id') or platform.processor())
