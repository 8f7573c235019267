# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Workarounds for mmaction2 1.2 and mmengine 0.10 on current Python and torch.

Each workaround fixes one fault in the library itself. If a config imports this
package, mmaction2's own tools therefore work too. ``python -m
mmvidattn.compat`` lists each workaround with its symptom, upstream issue,
expected end and changes. ``MMVIDATTN_SKIP_PATCHES=name,name`` skips some of
them.

- ``registry.py``: The list of workarounds, and helpers to write one.
- ``imports.py``: Imports that fail or print warnings.
- ``security.py``: Files that run code when loaded.
- ``runtime.py``: Wrong results, and errors in training, testing and decoding.
"""
from . import imports, security, runtime  # noqa: F401, I001
from .registry import (
    SKIP,
    WORKAROUNDS,
    apply,
    apply_all,
    main,
    register_on_lookup,
)

__all__ = ['SKIP', 'WORKAROUNDS', 'apply', 'apply_all', 'main',
           'register_on_lookup']
