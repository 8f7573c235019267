# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""The processor of this machine, for figures to be said with."""
import platform
from pathlib import Path

CPUINFO = Path('/proc/cpuinfo')


def processor_name() -> str:
    """Its name, as Linux has it; elsewhere what Python knows of it."""
    if CPUINFO.exists():
        for line in CPUINFO.read_text().splitlines():
            key, _, value = line.partition(':')
            if key.strip() == 'model name':
                return value.strip()
    return platform.processor() or platform.machine()
