# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Choice of backends, by default or by ``mmvidattn tune``."""
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

# Maximum size of a file written by ``mmvidattn tune``.
MAX_BYTES = 2**20
# Lowest gain of a backend that is used. Measured calls find their weights in
# the cache, so that small gains can be losses in whole models.
LEAST_GAIN = 1.1


class Condition(NamedTuple):
    """Condition of a call that, besides its arguments, selects the backend.

    Attributes:
        training: True if the call needs gradients.
        dtype: Dtype of the computation, such as 'float32'.
        compiled: True under torch.compile.
    """
    training: bool
    dtype: str
    compiled: bool


class Choice(NamedTuple):
    """Measured gains of backends on a device, with their origin.

    Attributes:
        gains: Speedup over the plain code, with keys of :func:`key_of`. A
            backend is used if its gain is at least ``LEAST_GAIN``.
        origin: Source of the gains, for logs.
    """
    gains: Mapping[str, float]
    origin: str

    def runs(self, key: str) -> bool:
        """Return True if the backend of this key is used."""
        return self.gains.get(key, 0) >= LEAST_GAIN

    @property
    def chosen(self) -> list[str]:
        """Sorted keys of the backends that are used."""
        return sorted(filter(self.runs, self.gains))


def key_of(op: str, backend: str, condition: Condition) -> str:
    """Return the key of a gain: 'linear/oneDNN/training/float32/eager'."""
    return '/'.join((
        op, backend, 'training' if condition.training else 'inference',
        condition.dtype, 'compiled' if condition.compiled else 'eager'))


def describe_machine(device: torch.device | str = 'cpu') -> dict[str, str]:
    """Return the processor and the versions that tuned gains depend on."""
    machine = dict(
        processor=processor_name(device), capability=str(capability(device)),
        torch=str(torch.__version__), mmvidattn=__version__)
    try:
        machine['triton'] = version('triton')
    except PackageNotFoundError:
        machine['triton'] = 'not installed'
    return machine


def cache_folder() -> Path:
    """Return the folder of tuned choices below the user's cache folder."""
    root = os.environ.get('XDG_CACHE_HOME') or Path.home() / '.cache'
    return Path(root, 'mmvidattn', 'backends')


def cache_path(device: torch.device | str = 'cpu') -> Path:
    """Return the path of a device's tuned choice. The file may not exist."""
    text = json.dumps(describe_machine(device), sort_keys=True)
    name = hashlib.sha256(text.encode()).hexdigest()[:16]
    return cache_folder() / f'{torch.device(device).type}_{name}.json'


def default_choice(device: torch.device | str = 'cpu') -> Choice:
    """Return the choice from the table of defaults."""
    name = capability(device)
    gains = default_gains(name)
    return Choice(gains, f'defaults for {name}' if gains else
                  f'no defaults for {name or torch.device(device).type}')


def read_choice(device: torch.device | str = 'cpu') -> Choice:
    """Return the tuned choice of a device, or else its default choice.

    Tuned gains take precedence over default gains. A damaged file is ignored
    with a warning.
    """
    default = default_choice(device)
    if capability(device) is None:
        return default
    try:
        path = cache_path(device)
        # Accept only a regular file, because reading a pipe could block.
        if not path.is_file():
            return default
        if path.stat().st_size > MAX_BYTES:
            raise ValueError(f'the file is larger than {MAX_BYTES} bytes')
        stored = check_stored(json.loads(path.read_bytes()), device)
    except (OSError, RuntimeError, ValueError, RecursionError) as error:
        warnings.warn(
            'the tuned choice of backends is ignored, and the defaults are '
            f'used: {error}. Run `mmvidattn tune` again, or delete the file '
            'with `mmvidattn tune --clear`', stacklevel=2)
        return default
    return Choice({**default.gains, **stored['gains']},
                  f'{stored["origin"]}, else {default.origin}')


def check_stored(stored: Any, device: torch.device | str) -> dict[str, Any]:
    """Check the content of a file of tuned gains, and return it.

    Raises:
        ValueError: If it is not a choice for this machine.
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
