# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""The list of patches, and helpers to write one."""
import functools
import inspect
import os
import platform
import sys
import textwrap
import types
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

SKIP = 'MMVIDATTN_SKIP_PATCHES'


@dataclass
class Patch:
    """A workaround for one fault, and its changes to this process.

    Attributes:
        function: Applies the patch. Returns the reason if nothing needs a
            change here.
        symptom: The error that a user meets, or the wrong result.
        until: When the patch can go.
        upstream: Where the fault is reported; None if it is not.
        changes: Full names of the objects that the patch replaced or added.
        skipped: Why the patch changes nothing here; None if it is active.
        is_applied: Whether :func:`apply` has run it.
    """
    function: Callable[[], str | None]
    symptom: str
    until: str
    upstream: str | None
    changes: list[str] = field(default_factory=list)
    skipped: str | None = None
    is_applied: bool = False

    @property
    def name(self) -> str:
        return self.function.__name__


PATCHES: list[Patch] = []
# Changes by the patch that :func:`apply` is running.
changes: list[str] = []


def patch(symptom: str, until: str, upstream: str | None = None) -> Callable:
    """Add a function to the patches; see :class:`Patch` for the arguments."""

    def register(function: Callable) -> Callable:
        PATCHES.append(Patch(function, symptom, until, upstream))
        return function

    return register


def apply() -> None:
    """Apply every patch; a second call changes nothing.

    Raises:
        ValueError: If ``MMVIDATTN_SKIP_PATCHES`` has an unknown name.
    """
    skip = {name for name in os.environ.get(SKIP, '').split(',') if name}
    unknown = skip - {patch.name for patch in PATCHES}
    if unknown:
        raise ValueError(
            f'{SKIP} must name patches ({", ".join(p.name for p in PATCHES)})'
            f', got {", ".join(sorted(unknown))}')
    for patch in PATCHES:
        if patch.is_applied:
            continue
        changes.clear()
        patch.skipped = (f'{SKIP} names it' if patch.name in skip else
                         patch.function())
        patch.changes = [*changes]
        patch.is_applied = True


def main() -> None:
    """Print the patches of this process, also of those not needed here."""
    versions = ', '.join(
        f'{name} {_version(name)}' for name in (
            'mmaction2', 'mmengine', 'mmcv', 'torch', 'numpy'))
    lines = [f'Patches on {versions}, Python {platform.python_version()}:']
    for patch in PATCHES:
        state = (f'not applied: {patch.skipped}' if patch.skipped else
                 'applied' if patch.is_applied else 'not applied yet')
        lines += ['', f'{patch.name} ({state})']
        for key, text in (('symptom', patch.symptom),
                          ('patch', patch.function.__doc__),
                          ('upstream', patch.upstream or 'not reported'),
                          ('until', patch.until)):
            lines += textwrap.wrap(
                ' '.join(text.split()), 79, initial_indent=f'  {key:10}',
                subsequent_indent=' ' * 12)
        lines += [f'  {"changes" if not i else "":10}{change}'
                  for i, change in enumerate(patch.changes)]
    print('\n'.join(lines))


def _version(name: str) -> str:
    module = sys.modules.get({'mmaction2': 'mmaction'}.get(name, name))
    return getattr(module, '__version__', 'not imported')


class Overlay(types.ModuleType):
    """A view of a module with some names replaced."""

    def __init__(self, module: Any, **names: Any) -> None:
        super().__init__(module.__name__)
        self.__dict__.update(names, _module=module)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._module, name)


def replace(owner: Any, name: str, value: Any) -> None:
    """Set an attribute of a module or a class, and list the change."""
    path = owner.__name__
    if isinstance(owner, type):
        path = f'{owner.__module__}.{owner.__qualname__}'
    setattr(owner, name, value)
    changes.append(f'{path}.{name}')


def wrap(owner: Any, name: str, wrapper: Callable[..., Any]) -> None:
    """Let ``owner.name(...)`` run ``wrapper(original, ...)``."""
    original = getattr(owner, name)

    @functools.wraps(original)
    def patched(*args, **kwargs):
        return wrapper(original, *args, **kwargs)

    is_static = isinstance(inspect.getattr_static(owner, name), staticmethod)
    replace(owner, name, staticmethod(patched) if is_static else patched)
