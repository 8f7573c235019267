# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Efficient attention for video, as an extension of mmaction2.

Importing this package first applies workarounds for the OpenMMLab stack on a
current PyTorch (:mod:`mmvidattn.compat`). mmaction2's registries then find
every class of this package, so that a config only needs
``custom_imports = dict(imports=['mmvidattn'])``.

Parts of the package, torch, mmengine and mmaction2 are imported when they are
first used, and the workarounds are applied with them: importing mmvidattn by
itself takes a few hundredths of a second.
"""
import importlib
from typing import Any

from . import compat
from .version import __version__

compat.apply()
compat.register_on_lookup('mmvidattn.registered')

# The package of each name.
NAMES = dict(
    OnlineDetector='live', SlidingClassifier='apis', VideoClassifier='apis',
    get_model='apis', list_models='apis')
PACKAGES = ('apis', 'backbones', 'convert', 'datasets', 'engine', 'evaluation',
            'export', 'heads', 'layers', 'live', 'losses', 'online', 'ops',
            'recognizers', 'visualization')

__all__ = [*NAMES, *PACKAGES, '__version__', 'compat']


def __getattr__(name: str) -> Any:
    if name in PACKAGES:
        return importlib.import_module(f'{__name__}.{name}')
    if name in NAMES:
        package = importlib.import_module(f'{__name__}.{NAMES[name]}')
        return getattr(package, name)
    raise AttributeError(f'module {__name__!r} has no attribute {name!r}')


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
