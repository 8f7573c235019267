# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Workarounds for mmaction2 1.2 and mmengine 0.10 on current Python and torch.

Each workaround fixes one fault in the library itself, so that mmaction2's own
tools benefit as well once a config imports this package.
``python -m mmvidattn.compat`` lists each workaround with its symptom, upstream
issue, expected end and changes. ``MMVIDATTN_SKIP_PATCHES=name,name`` leaves
some out.

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
