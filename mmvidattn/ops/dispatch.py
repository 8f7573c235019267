# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""One dispatch for all ops: the plain code, or a backend that is faster here.

The body of an op is its plain code, right on every device. A backend is
another function with the same arguments and result; its verifier answers why
it does not fit these arguments, or None. The first backend that fits runs, in
eager mode as well as under ``torch.compile`` and in an export. So verifiers
look at shapes, dtypes, devices and modes only, and reject what the op rejects.

A backend without a measured gain runs only on request. The environment
variable ``MMVIDATTN_DISPATCH`` and :func:`use_backends` choose: ``0`` leaves
only the plain code, ``1``, the default, adds the measured backends, and
``all`` all of them. ``python -m mmvidattn.ops`` prints what runs when, and
``mmvidattn doctor`` what runs on a machine.
"""
import functools
import logging
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import torch

from .torch_private import is_functional_transform, statically_known_true

logger = logging.getLogger(__name__)

# Before 2.7, torch does not tell the two apart.
_is_exporting = getattr(
    torch.compiler, 'is_exporting', torch.compiler.is_compiling)


class Backend(NamedTuple):
    """One way to run an op.

    Attributes:
        name: Its name.
        function: Called with the arguments of the op.
        why_not: Called likewise; a reason not to run it, or None.
        where: Where it runs, for the table.
        gain: How many times as fast as the compiled plain code; None if not
            measured, and the backend runs only on request.
    """
    name: str
    function: Callable[..., Any]
    why_not: Callable[..., str | None]
    where: str
    gain: str | None


_backends: dict[str, list[Backend]] = {}
_switch = os.environ.get('MMVIDATTN_DISPATCH', '1')
if _switch not in ('0', '1', 'all'):
    raise ValueError("the environment variable MMVIDATTN_DISPATCH must be '0',"
                     f" '1' or 'all', got {_switch!r}")
_enabled = _switch != '0'
_unmeasured = _switch == 'all'


def dispatched(plain: Callable) -> Callable:
    """Make ``plain`` an op that may have backends; it stays as ``op.plain``.
    """
    name = plain.__name__
    backends = _backends.setdefault(name, [])

    @functools.wraps(plain)
    def op(*args, **kwargs):
        if _enabled:
            for backend in backends:
                reason = _why_not(backend, *args, **kwargs)
                if reason is None:
                    return backend.function(*args, **kwargs)
                if not torch.compiler.is_compiling():
                    _log_once(name, backend.name, reason)
        return plain(*args, **kwargs)

    op.plain = plain
    return op


def register_backend(op: Callable, name: str, function: Callable[..., Any],
                     why_not: Callable[..., str | None], *, where: str,
                     gain: str | None) -> None:
    """Add a :class:`Backend` to an op; the first that fits runs.

    Raises:
        ValueError: If the op is not dispatched or has such a backend already.
    """
    backends = _backends.get(op.__name__)
    if backends is None or not hasattr(op, 'plain'):
        raise ValueError(f'{op.__name__} is not a dispatched op; there are '
                         f'{sorted(_backends)}')
    if any(backend.name == name for backend in backends):
        raise ValueError(f'{op.__name__} has a backend {name!r} already')
    backends.append(Backend(name, function, why_not, where, gain))


def enabled() -> bool:
    """Whether backends may run."""
    return _enabled


@contextmanager
def use_backends(enabled: bool,
                 unmeasured: bool | None = None) -> Iterator[None]:
    """Let backends run in a context, or only the plain code.

    Args:
        enabled: Let backends run.
        unmeasured: Also let backends without a measured gain run. Defaults to
            the setting outside of the context.
    """
    global _enabled, _unmeasured
    before = _enabled, _unmeasured
    _enabled = enabled
    if unmeasured is not None:
        _unmeasured = unmeasured
    try:
        yield
    finally:
        _enabled, _unmeasured = before


def _why_not(backend: Backend, *args, **kwargs) -> str | None:
    """Return the reason not to run a backend, or None."""
    if not _enabled:
        return 'backends are turned off'
    if backend.gain is None and not _unmeasured:
        return 'gain not measured; MMVIDATTN_DISPATCH=all requests it'
    return backend.why_not(*args, **kwargs)


def explain(op: Callable, *args, **kwargs
            ) -> tuple[str | None, dict[str, str]]:
    """Name what would run an op with these arguments, without running it.

    Returns:
        The backend's name, or None for the plain code; and, by the names of
        the backends that come before it, why they do not run.
    """
    reasons = {}
    for backend in _backends[op.__name__]:
        reason = _why_not(backend, *args, **kwargs)
        if reason is None:
            return backend.name, reasons
        reasons[backend.name] = reason
    return None, reasons


def table() -> str:
    """Ops with backends, their backends and where these run, in Markdown."""
    lines = [
        '| op | backend | runs on '
        '| times as fast as the compiled plain code |',
        '| --- | --- | --- | --- |'
    ]
    for op, backends in sorted(_backends.items()):
        lines += (f'| `{op}` | {b.name} | {b.where} | '
                  f'{b.gain or "not measured, only on request"} |'
                  for b in backends)
    return '\n'.join(lines)


def not_cpu_training(*tensors: torch.Tensor) -> str | None:
    """Reason not to run what is made for training on a CPU, or None."""
    if tensors[0].device.type != 'cpu':
        return 'not on a CPU'
    if not needs_gradients(*tensors):
        return 'no gradient is needed'
    return None


def needs_gradients(*tensors: torch.Tensor) -> bool:
    return torch.is_grad_enabled() and any(x.requires_grad for x in tensors)


def is_known(condition: bool) -> bool:
    """Whether it is true, for all sizes that a compiled graph may take."""
    if torch.compiler.is_compiling():
        return statically_known_true(condition)
    return condition


def not_eager_autograd() -> str | None:
    """Reason not to run an operator that has but eager gradients, or None.

    Ask first of all: a size that is looked at is fixed in an export.
    """
    if _is_exporting() or torch.jit.is_tracing():
        return 'an exported program takes any number of rows'
    if not torch.compiler.is_compiling() and is_functional_transform():
        return 'transformed by torch.func or forward-mode derivatives'
    return None


@functools.cache
def _log_once(op: str, backend: str, reason: str) -> None:
    logger.debug('%s: not the backend %s: %s', op, backend, reason)
