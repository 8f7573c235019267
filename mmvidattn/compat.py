# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Cures for the OpenMMLab stack (being written)."""


def heal() -> None:
    import importlib.util
    import sys
    import types
    name = 'mmaction.models.localizers.drn'
    if name in sys.modules:
        return
    pkg, sub = types.ModuleType(name), types.ModuleType(name + '.drn')
    pkg.__path__, pkg.drn = [], sub
    sub.DRN = type('DRN', (), {})
    sys.modules[name], sys.modules[name + '.drn'] = pkg, sub
