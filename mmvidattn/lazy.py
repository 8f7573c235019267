# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Packages that import a module when a program first uses its names.

A classifier of videos then imports neither online networks nor metrics.
"""
import importlib
import sys
from collections.abc import Mapping, Sequence
from types import ModuleType
from typing import Any


class LazyPackage(ModuleType):
    """Package of :func:`lazy_package`."""
    _modules: Mapping[str, Sequence[str]]

    def __getattr__(self, name: str) -> Any:
        if name in self._modules:
            importlib.import_module(f'.{name}', self.__name__)
            # The module, or its function of the same name.
            return self.__dict__[name]
        for module, names in self._modules.items():
            if name in names:
                value = getattr(
                    importlib.import_module(f'.{module}', self.__name__), name)
                # Keep it, because a found attribute does not come here.
                self.__dict__[name] = value
                return value
        raise AttributeError(
            f'module {self.__name__!r} has no attribute {name!r}')

    def __setattr__(self, name: str, value: Any) -> None:
        # An import sets a module in its package. If it has the name of its
        # function, the package has the function.
        if isinstance(value, ModuleType) and name in self._modules.get(
                name, ()):
            value = getattr(value, name)
        super().__setattr__(name, value)

    def __dir__(self) -> list[str]:
        return sorted({*self.__dict__, *self.__all__})


def import_module_of(package: LazyPackage, name: str) -> None:
    """Import the module of a public name, if the package has it.

    The name may not be defined yet, while its module is imported.
    """
    for module, names in package._modules.items():
        if name in names:
            importlib.import_module(f'.{module}', package.__name__)


def lazy_package(name: str, modules: Mapping[str, Sequence[str]]) -> None:
    """Let a package import its modules when a program uses their names.

    The names become the ``__all__`` of the package.

    Args:
        name: ``__name__`` of the package.
        modules: Public names of each module. A module without names is public
            itself.
    """
    package = sys.modules[name]
    package._modules = modules
    package.__all__ = sorted(
        public for module, names in modules.items()
        for public in names or [module])
    package.__class__ = LazyPackage
