# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Workarounds for mmaction2 1.2 and mmengine 0.10 on current Python and torch.

Each workaround fixes one fault, by replacing a part of the faulty library.
mmaction2's own tools therefore work too, if their config imports this package.
``docs/workarounds.md`` lists each workaround with its symptom, the upstream
issue and the condition to remove it.
``MMVIDATTN_SKIP_PATCHES=name,name`` in the environment skips workarounds.

- ``registry.py``: The list of workarounds, and helpers to write one.
- ``imports.py``: Imports that fail or print warnings.
- ``security.py``: Files that run code when loaded.
- ``numpy_2.py``: Parts of mmaction2 that fail with numpy 2.
- ``runtime.py``: Wrong results, and errors in training, testing and decoding.
"""
from . import imports, security, numpy_2, runtime  # noqa: F401, I001
from .registry import SKIP, WORKAROUNDS, apply, call_after_import

__all__ = ['SKIP', 'WORKAROUNDS', 'apply', 'call_after_import']
