# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""The processor's name, reported beside measurements."""
import platform

from ..ops.processor import cpuinfo


def processor_name() -> str:
    """Return the name that Linux reports, or else Python's."""
    return (cpuinfo('model name') or platform.processor()
            or platform.machine())
