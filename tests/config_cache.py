# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Configs that are read only once for all tests of a process."""
import copy
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

from mmengine.config import Config

from mmvidattn import apis


@cache
def _read(name: str | Path) -> Config:
    return apis.load_config(name)


def load_config(name: str | Path,
                options: Mapping[str, Any] | None = None) -> Config:
    """Load a config, like :func:`mmvidattn.apis.load_config`."""
    if options:
        return apis.load_config(name, options)
    return copy.deepcopy(_read(name))
