# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""The list of workarounds, and helpers to write one."""
import copy
import functools
import inspect
import os
import sys
import types
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec
from typing import Any

SKIP = 'MMVIDATTN_SKIP_PATCHES'


@dataclass
class Workaround:
    """Workaround for one fault.

    Attributes:
        function: Function that applies the workaround. Its docstring gives
            the symptom of the fault, the condition under which the workaround
            can be removed (until), and the report of the fault (upstream).
        modules: Modules whose first import applies it. Without any, the
            import of mmvidattn applies it.
        is_before: Apply it before these modules are executed, or else after,
            because it changes them.
        is_applied: True once it has run.
    """
    function: Callable[[], None]
    modules: Sequence[str] = ()
    is_before: bool = False
    is_applied: bool = False

    @property
    def name(self) -> str:
        return self.function.__name__

    def apply(self) -> None:
        """Apply the workaround, unless it is applied already."""
        if self.is_applied:
            return
        self.is_applied = True
        if self.name not in _skipped_names():
            self.function()


WORKAROUNDS: list[Workaround] = []
# Actions that are not workarounds, but also wait for an import.
WAITING: list[Workaround] = []
# Full names of the objects that workarounds have replaced or added.
changes: list[str] = []


def workaround(before: Sequence[str] = (), after: Sequence[str] = ()
               ) -> Callable:
    """Register a function for modules as in :class:`Workaround`."""

    def register(function: Callable) -> Callable:
        WORKAROUNDS.append(
            Workaround(function, [*before, *after], bool(before)))
        return function

    return register


def _skipped_names() -> set[str]:
    return {name for name in os.environ.get(SKIP, '').split(',') if name}


def apply() -> None:
    """Apply each workaround, now or when its modules are imported.

    A second call changes nothing.

    Raises:
        ValueError: If ``MMVIDATTN_SKIP_PATCHES`` has an unknown name.
    """
    names = [one.name for one in WORKAROUNDS]
    unknown = _skipped_names() - {*names}
    if unknown:
        raise ValueError(
            f'{SKIP} must name workarounds ({", ".join(names)}), got '
            f'{", ".join(sorted(unknown))}')
    # A workaround may import modules that later workarounds wait for.
    if not any(isinstance(finder, _Finder) for finder in sys.meta_path):
        sys.meta_path.insert(0, _Finder())
    for one in WORKAROUNDS:
        if not one.modules or not sys.modules.keys().isdisjoint(one.modules):
            one.apply()


class _Finder(MetaPathFinder):
    """Finder of the modules that workarounds wait for."""

    def find_spec(self, name: str, path: Any = None,
                  target: Any = None) -> ModuleSpec | None:
        waiting = [one for one in [*WORKAROUNDS, *WAITING]
                   if name in one.modules and not one.is_applied]
        if not waiting:
            return None
        finders = (finder for finder in sys.meta_path if finder is not self)
        spec = next(filter(None, (
            finder.find_spec(name, path, target) for finder in finders)), None)
        if spec is not None and spec.loader is not None:
            # Several modules may share a loader.
            loader = spec.loader = copy.copy(spec.loader)
            loader.exec_module = functools.partial(
                _execute, execute=loader.exec_module, waiting=waiting)
        return spec


def _execute(module: types.ModuleType, execute: Callable,
             waiting: list[Workaround]) -> None:
    """Execute a module, with the workarounds that wait for it."""
    for one in waiting:
        if one.is_before:
            one.apply()
    execute(module)
    for one in waiting:
        one.apply()


def call_after_import(name: str, function: Callable[[], None]) -> None:
    """Call a function after the import of a module, or now if it is there."""
    if name in sys.modules:
        function()
    else:
        WAITING.append(Workaround(function, [name]))


class Overlay(types.ModuleType):
    """A view of a module with some names replaced."""

    def __init__(self, module: Any, **names: Any) -> None:
        super().__init__(module.__name__)
        self.__dict__.update(names, _module=module)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._module, name)


def replace(owner: Any, name: str, value: Any) -> None:
    """Set an attribute of a module or class, and list the change."""
    path = owner.__name__
    if isinstance(owner, type):
        path = f'{owner.__module__}.{owner.__qualname__}'
    setattr(owner, name, value)
    changes.append(f'{path}.{name}')


def wrap(owner: Any, name: str, wrapper: Callable[..., Any]) -> None:
    """Let ``owner.name(...)`` run ``wrapper(original, ...)``."""
    original = getattr(owner, name)

    @functools.wraps(original)
    def wrapped(*args, **kwargs):
        return wrapper(original, *args, **kwargs)

    is_static = isinstance(inspect.getattr_static(owner, name), staticmethod)
    replace(owner, name, staticmethod(wrapped) if is_static else wrapped)
