# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""An earlier name of :mod:`mmvidattn.live`."""
from ..live import *  # noqa: F403
from ..live import __all__  # noqa: F401
