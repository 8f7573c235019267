# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Registered classes by kind, for the contract tests.

A contract is a test that runs over ``classes_of(KIND)``, so a new class is
tested as soon as it is registered. `test_registered_classes.py` fails if a
class has neither a contract nor a test that names it.
"""
import inspect

import mmaction.registry
from mmengine.registry import Registry

import mmvidattn.registry  # noqa: F401


def find_kinds() -> dict[str, list[type]]:
    """Return the registered classes of each folder of the package.

    The kind of a class is its folder, such as 'backbones' or
    'datasets.transforms'. A class of mmvidattn/FOLDER/FILE.py has the kind
    FOLDER.
    """
    kinds = {}
    for registry in vars(mmaction.registry).values():
        if isinstance(registry, Registry):
            for cls in registry.module_dict.values():
                package, *folders = cls.__module__.split('.')
                if package == 'mmvidattn' and inspect.isclass(cls):
                    kinds.setdefault('.'.join(folders[:-1]), set()).add(cls)
    return {kind: sorted(classes, key=lambda x: x.__name__)
            for kind, classes in kinds.items()}


def classes_of(kind: str) -> list[type]:
    """Return the registered classes of a kind, sorted by name."""
    return find_kinds()[kind]


def arguments_for(cls: type, **values) -> dict:
    """Select the values that the constructor of a class takes."""
    names = inspect.signature(cls.__init__).parameters
    return {name: value for name, value in values.items() if name in names}
