# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Dispatch of ops to the plain code or to a faster backend.

The body of an op is its plain code, which is correct on every device. A
backend is a function with the same arguments and result. Its verifier returns
None if the backend supports the arguments, or else the reason why not. The op
runs the first backend that supports the arguments and was measured to be
faster, in eager mode, under ``torch.compile`` and in an export. Verifiers
therefore check only shapes, dtypes, devices and modes. They must reject all
arguments that the op rejects.

The gains come from :mod:`mmvidattn.ops.defaults`, or from ``mmvidattn tune``
on this machine (:mod:`mmvidattn.ops.choice`). The environment variable
``MMVIDATTN_DISPATCH`` and :func:`use_backends` override them: ``0`` disables
all backends; ``default`` ignores tuned gains; ``1``, the default, uses them;
``all`` runs every backend that supports the arguments. ``python -m
mmvidattn.ops`` prints the table of backends.
"""
import functools
import logging
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import torch

from .choice import (
    LEAST_GAIN,
    Choice,
    Condition,
    default_choice,
    key_of,
    read_choice,
)
from .defaults import MACHINES
from .torch_private import (
    constant_while_compiling,
    is_functional_transform,
    statically_known_true,
)

logger = logging.getLogger(__name__)

# Before 2.7, torch cannot distinguish exporting from compiling.
_is_exporting = getattr(
    torch.compiler, 'is_exporting', torch.compiler.is_compiling)
VARIABLE = 'MMVIDATTN_DISPATCH'
SWITCHES = '0', 'default', '1', 'all'
DTYPES = 'float16', 'bfloat16', 'float32', 'float64'


class Backend(NamedTuple):
    """Alternative implementation of an op.

    Attributes:
        name: Name in tables and choices.
        function: Function with the arguments of the op.
        why_not: Verifier, which is called with the same arguments. It returns
            a reason not to run the backend, or None.
        where: Conditions under which it can run, for the table.
    """
    name: str
    function: Callable[..., Any]
    why_not: Callable[..., str | None]
    where: str


Recorder = Callable[[Callable, tuple, dict[str, Any]], None]

_backends: dict[str, list[Backend]] = {}
_ops: dict[str, Callable] = {}
_switch = os.environ.get(VARIABLE, '1')
if _switch not in SWITCHES:
    raise ValueError(f'the environment variable {VARIABLE} must be one of '
                     f'{", ".join(map(repr, SWITCHES))}, got {_switch!r}')
_enabled = _switch != '0'
_unmeasured = _switch == 'all'
# Choice of each device, read when an op first needs it.
_choices: dict[torch.device, Choice] = {}
# Chosen backends by op and condition.
_decisions: dict[tuple, tuple[str, ...]] = {}
# Number of changes of the choices. Compiled code is invalidated by a change.
_changes = 0
_recorder: Recorder | None = None


def dispatched(plain: Callable) -> Callable:
    """Decorate a function as an op that may have backends.
    """
    name = plain.__name__
    backends = _backends.setdefault(name, [])

    @functools.wraps(plain)
    def op(*args, **kwargs):
        if _recorder is not None and not torch.compiler.is_compiling():
            return _record(op, args, kwargs)
        if _enabled and backends:
            chosen = None if _unmeasured else chosen_backends(
                name, *condition_of(args, kwargs))
            for backend in backends:
                if chosen is not None and backend.name not in chosen:
                    continue
                reason = backend.why_not(*args, **kwargs)
                if reason is None:
                    return backend.function(*args, **kwargs)
                if not torch.compiler.is_compiling():
                    _log_once(name, backend.name, reason)
        return plain(*args, **kwargs)

    op.plain = plain
    _ops[name] = op
    return op


def register_backend(op: Callable, name: str, function: Callable[..., Any],
                     why_not: Callable[..., str | None], *,
                     where: str) -> None:
    """Add a :class:`Backend` to an op.

    Backends are tried in the order of registration. By default, a backend runs
    only on processors for which :mod:`mmvidattn.ops.defaults` has a gain of at
    least 1.

    Raises:
        ValueError: If the op is not dispatched, or already has a backend of
            this name.
    """
    backends = _backends.get(op.__name__)
    if backends is None or not hasattr(op, 'plain'):
        raise ValueError(f'{op.__name__} is not a dispatched op; there are '
                         f'{sorted(_backends)}')
    if any(backend.name == name for backend in backends):
        raise ValueError(f'{op.__name__} has a backend {name!r} already')
    backends.append(Backend(name, function, why_not, where))
    _decisions.clear()


def list_backends() -> Iterator[tuple[Callable, Backend]]:
    """Yield each backend with its op."""
    for name, backends in _backends.items():
        for backend in backends:
            yield _ops[name], backend


def enabled() -> bool:
    """Return True if backends may run."""
    return _enabled


@contextmanager
def use_backends(enabled: bool,
                 unmeasured: bool | None = None) -> Iterator[None]:
    """Enable or disable backends in a context.

    Args:
        enabled: Allow backends to run.
        unmeasured: Also run backends that were not measured to be faster.
            Defaults to the setting outside of the context.
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


def current_choice(device: torch.device | str = 'cpu') -> Choice:
    """Return the current choice of a device; read it on first use."""
    device = _with_index(device)
    if device not in _choices:
        read = default_choice if _switch == 'default' else read_choice
        _choices[device] = read(device)
    return _choices[device]


def _with_index(device: torch.device | str) -> torch.device:
    device = torch.device(device)
    if device.type == 'cuda' and device.index is None:
        device = torch.device('cuda', torch.cuda.current_device())
    return device


def set_choice(device: torch.device | str, choice: Choice | None) -> None:
    """Replace the choice of a device; None reads it again on next use."""
    global _changes
    device = _with_index(device)
    _decisions.clear()
    _choices.pop(device, None)
    if choice is not None:
        _choices[device] = choice
    _changes += 1


@contextmanager
def use_choice(device: torch.device | str, choice: Choice) -> Iterator[None]:
    """Replace the chosen implementations of a device in a ``with`` block."""
    before = _choices.get(_with_index(device))
    set_choice(device, choice)
    try:
        yield
    finally:
        set_choice(device, before)


def is_overridden() -> bool:
    """Return True if a switch overrides the choices."""
    return not _enabled or _unmeasured


def summary(device: torch.device | str = 'cpu') -> str:
    """Describe in one line which backends may run on a device."""
    if not _enabled:
        return f'backends: off ({VARIABLE}=0)'
    if _unmeasured:
        return f'backends: all that fit ({VARIABLE}=all)'
    choice = current_choice(device)
    names: dict[str, list[str]] = {}
    for key in choice.chosen:
        op, backend, *condition = key.split('/')
        names.setdefault(f'{op} by {backend}', []).append(
            ' '.join(condition))
    text = '; '.join(f'{name} ({", ".join(conditions)})'
                     for name, conditions in names.items())
    return f'backends: {choice.origin}: {text or "the plain code only"}'


def running_keys(device: torch.device | str = 'cpu') -> list[str]:
    """Return the keys of all backends that may run on a device."""
    if _enabled and _unmeasured:
        return sorted(
            key_of(op, backend.name, Condition(training, dtype, compiled))
            for op, backends in _backends.items() for backend in backends
            for training in (False, True) for dtype in DTYPES
            for compiled in (False, True))
    return current_choice(device).chosen if _enabled else []


def follow(device: torch.device | str, keys: list[str],
           origin: str) -> str | None:
    """Use the same backends as an earlier process, such as on resume.

    Args:
        device: Device whose choice to replace.
        keys: Result of :func:`running_keys` in the earlier process.
        origin: Source of the keys, for logs.

    Returns:
        One line about the difference from the current choice, or None if they
        are equal. A switch that is set now takes precedence.
    """
    now = running_keys(device)
    differing = sorted({*keys} ^ {*now})
    if not differing:
        return None
    text = (f'backends: {origin} used different backends than this machine '
            f'would: {", ".join(differing)}; ')
    if is_overridden():
        return (f'{text}{VARIABLE} takes precedence, so the results may '
                'differ in rounding')
    set_choice(device, Choice(dict.fromkeys(keys, LEAST_GAIN), origin))
    return f'{text}this run follows {origin}'


@contextmanager
def recording(recorder: Recorder) -> Iterator[None]:
    """Call ``recorder(op, args, kwargs)`` for each outermost op.

    Only the plain code runs.
    """
    global _recorder
    _recorder = recorder
    try:
        yield
    finally:
        _recorder = None


def _record(op: Callable, args: tuple, kwargs: dict[str, Any]) -> Any:
    global _recorder
    recorder, _recorder = _recorder, None
    try:
        recorder(op, args, kwargs)
        with use_backends(False):
            return op(*args, **kwargs)
    finally:
        _recorder = recorder


def condition_of(args: tuple, kwargs: dict[str, Any]
                 ) -> tuple[torch.device, bool, torch.dtype, bool]:
    """Return device, need of gradients, dtype and compilation of a call."""
    if kwargs:
        args = (*args, *kwargs.values())
    first = args[0]
    device, dtype = first.device, first.dtype
    kind = device.type
    if kind in ('cpu', 'cuda') and torch.is_autocast_enabled(kind):
        dtype = torch.get_autocast_dtype(kind)
    training = False
    if torch.is_grad_enabled():
        for x in args:
            if isinstance(x, torch.Tensor) and x.requires_grad:
                training = True
    return device, training, dtype, torch.compiler.is_compiling()


def may_run(op: Callable, backend: str, x: torch.Tensor) -> bool:
    """Return True if a backend may run in eager inference with a tensor."""
    if not _enabled or _unmeasured:
        return _enabled
    return backend in chosen_backends(
        op.__name__, x.device, False, x.dtype, False)


def chosen_backends(op: str, device: torch.device, training: bool,
                    dtype: torch.dtype, compiled: bool) -> tuple[str, ...]:
    """Return the backends of an op that may run, if supported."""
    return _chosen(op, device, training, dtype, compiled, _changes)


# The compiler calls this function while tracing, and treats the result as a
# constant. The last argument is the number of changes of the choice, so a
# change makes the compiler trace again.
@constant_while_compiling
def _chosen(*key: Any) -> tuple[str, ...]:
    decision = _decisions.get(key)
    if decision is None:
        op, device, training, dtype, compiled, _ = key
        choice = current_choice(device)
        condition = Condition(
            training, str(dtype).removeprefix('torch.'), compiled)
        decision = tuple(
            backend.name for backend in _backends[op]
            if choice.runs(key_of(op, backend.name, condition)))
        _decisions[key] = decision
    return decision


def explain(op: Callable, *args, **kwargs
            ) -> tuple[str | None, dict[str, str]]:
    """Explain which backend would run an op with these arguments.

    Returns:
        Name of the backend, or None for the plain code; and the reasons why
        earlier backends do not run, by name.
    """
    reasons = {}
    for backend in _backends[op.__name__]:
        if not _enabled:
            reasons[backend.name] = 'backends are turned off'
            continue
        # Prefer a verifier's reason, which is more informative than a gain.
        reason = backend.why_not(*args, **kwargs) or _explain_gain(
            op.__name__, backend.name, args, kwargs)
        if reason is None:
            return backend.name, reasons
        reasons[backend.name] = reason
    return None, reasons


def _explain_gain(op: str, backend: str, args: tuple,
                  kwargs: dict[str, Any]) -> str | None:
    """Return why a supported backend is not chosen, or None if it is."""
    device, training, dtype, compiled = condition_of(args, kwargs)
    if _unmeasured or backend in chosen_backends(
            op, device, training, dtype, compiled):
        return None
    choice = current_choice(device)
    gain = choice.gains.get(key_of(op, backend, Condition(
        training, str(dtype).removeprefix('torch.'), compiled)))
    if gain is None:
        return (f'not measured on this machine ({choice.origin}); `mmvidattn '
                f'tune` measures it, {VARIABLE}=all runs it')
    return (f'{gain:.2f} times as fast as the plain code ({choice.origin}), '
            f'less than {LEAST_GAIN}')


def table() -> str:
    """Return the backends and their measured gains, in Markdown."""
    lines = ['| op | backend | runs on |', '| --- | --- | --- |']
    for op, backends in sorted(_backends.items()):
        lines += (f'| `{op}` | {b.name} | {b.where} |' for b in backends)
    for number, machine in enumerate(MACHINES, 1):
        lines += [
            '', f'Machine {number}, {machine.capability}: {machine.name}', '',
            '| op | backend | mode | dtype | eager | compiled |',
            '| --- | --- | --- | --- | --- | --- |']
        for op, backend, mode, dtype, *gains in machine.measurements:
            shown = ' | '.join('not measured' if gain is None else
                               f'{gain:.2f}' for gain in gains)
            lines.append(
                f'| `{op}` | {backend} | {mode} | {dtype} | {shown} |')
    return '\n'.join(lines)


def not_cpu_training(*tensors: torch.Tensor) -> str | None:
    """Return a reason not to run a backend for training on a CPU, or None."""
    if tensors[0].device.type != 'cpu':
        return 'not on a CPU'
    if not needs_gradients(*tensors):
        return 'no gradient is needed'
    return None


def needs_gradients(*tensors: torch.Tensor) -> bool:
    """Return True if autograd will need the gradient of a tensor."""
    return torch.is_grad_enabled() and any(x.requires_grad for x in tensors)


def is_known(condition: bool) -> bool:
    """Return True if a condition holds for all sizes of a compiled graph."""
    if torch.compiler.is_compiling():
        return statically_known_true(condition)
    return condition


def not_eager_autograd() -> str | None:
    """Return why an operator with eager-only autograd must not run, or None.

    Verifiers must call this first, because reading a size makes it constant in
    an export.
    """
    if _is_exporting() or torch.jit.is_tracing():
        return 'an exported program takes any number of rows'
    if not torch.compiler.is_compiling() and is_functional_transform():
        return 'transformed by torch.func or forward-mode derivatives'
    return None


@functools.cache
def _log_once(op: str, backend: str, reason: str) -> None:
    logger.debug('%s: not the backend %s: %s', op, backend, reason)
