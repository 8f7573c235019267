# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Choice of backends: the defaults, or what ``mmvidattn tune`` measured."""
import hashlib
import json
import math
import os
import warnings
from collections.abc import Mapping
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, NamedTuple

import torch

from ..version import __version__
from .defaults import default_gains
from .processor import capability, processor_name

# Larger files were not written by us.
MAX_BYTES = 2**20


class Condition(NamedTuple):
    """Part of a call that decides, besides its arguments, which code runs.

    Attributes:
        training: True if the call needs gradients.
        dtype: Dtype of the computation, such as 'float32'.
        compiled: True under torch.compile.
    """
    training: bool
    dtype: str
    compiled: bool


class Choice(NamedTuple):
    """Measured gains of backends on a device, and where they come from.

    Attributes:
        gains: Speed relative to the plain code by :func:`key_of`. A backend
            runs where its gain is at least 1.
        origin: Source of the gains, for logs.
    """
    gains: Mapping[str, float]
    origin: str

    def runs(self, key: str) -> bool:
        """Return True if a backend runs under a condition."""
        return self.gains.get(key, 0) >= 1

    @property
    def chosen(self) -> list[str]:
        """Keys of what runs, sorted."""
        return sorted(filter(self.runs, self.gains))


def key_of(op: str, backend: str, condition: Condition) -> str:
    """Return the key of a gain: 'linear/oneDNN/training/float32/eager'."""
    return '/'.join((
        op, backend, 'training' if condition.training else 'inference',
        condition.dtype, 'compiled' if condition.compiled else 'eager'))


def describe_machine(device: torch.device | str = 'cpu') -> dict[str, str]:
    """Return what tuned gains depend on: processor and versions."""
    found = dict(
        processor=processor_name(device), capability=str(capability(device)),
        torch=str(torch.__version__), mmvidattn=__version__)
    try:
        found['triton'] = version('triton')
    except PackageNotFoundError:
        found['triton'] = 'not installed'
    return found


def cache_folder() -> Path:
    """Return the folder of tuned choices below the user's cache folder."""
    root = os.environ.get('XDG_CACHE_HOME') or Path.home() / '.cache'
    return Path(root, 'mmvidattn', 'backends')


def cache_path(device: torch.device | str = 'cpu') -> Path:
    """Return the file of the tuned choice of a device; it may be missing."""
    text = json.dumps(describe_machine(device), sort_keys=True)
    name = hashlib.sha256(text.encode()).hexdigest()[:16]
    return cache_folder() / f'{torch.device(device).type}_{name}.json'


def default_choice(device: torch.device | str = 'cpu') -> Choice:
    """Return the choice by the table of defaults."""
    name = capability(device)
    gains = default_gains(name)
    return Choice(gains, f'defaults for {name}' if gains else
                  f'no defaults for {name or torch.device(device).type}')


def read_choice(device: torch.device | str = 'cpu') -> Choice:
    """Return the tuned choice of a device, or else its default choice.

    Tuned gains replace default gains; other default gains stay. A damaged
    file causes a warning and is ignored.
    """
    default = default_choice(device)
    if capability(device) is None:
        return default
    try:
        path = cache_path(device)
        # Reading a pipe would not end.
        if not path.is_file():
            return default
        if path.stat().st_size > MAX_BYTES:
            raise ValueError(f'the file is larger than {MAX_BYTES} bytes')
        stored = check_stored(json.loads(path.read_bytes()), device)
    except (OSError, RuntimeError, ValueError, RecursionError) as error:
        warnings.warn(
            'the tuned choice of backends is not used, and the defaults are: '
            f'{error}. Run `mmvidattn tune` again, or delete the file with '
            '`mmvidattn tune --clear`', stacklevel=2)
        return default
    return Choice({**default.gains, **stored['gains']},
                  f'{stored["origin"]}, else {default.origin}')


def check_stored(stored: Any, device: torch.device | str) -> dict[str, Any]:
    """Return the content of a file of tuned gains after checking it.

    Raises:
        ValueError: If it is not a choice of this machine.
    """
    if not isinstance(stored, dict):
        raise ValueError('expected a JSON object, got '
                         f'{type(stored).__name__}')
    machine = describe_machine(device)
    if stored.get('machine') != machine:
        raise ValueError(f'expected machine {machine}, got '
                         f'{stored.get("machine")!r}')
    check_gains(stored.get('gains'))
    if not isinstance(stored.get('origin'), str):
        raise ValueError(
            f'origin must be a string, got {stored.get("origin")!r}')
    return stored


def check_gains(gains: Any) -> None:
    """Check that a value maps keys to positive numbers.

    Raises:
        ValueError: If it does not.
    """
    if not isinstance(gains, dict):
        raise ValueError(f'gains must be an object, got {gains!r:.80}')
    for key, gain in gains.items():
        if (not isinstance(key, str) or key.count('/') != 4
                or type(gain) not in (int, float)
                or not math.isfinite(gain) or gain < 0):
            raise ValueError('gains must map op/backend/mode/dtype/compiler '
                             f'to numbers, got {key!r:.80}: {gain!r:.80}')
