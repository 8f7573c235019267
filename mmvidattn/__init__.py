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
from . import compat
from .lazy import lazy_package
from .version import __version__  # noqa: F401


def _extend_registries() -> None:
    from .registry import extend_registries
    extend_registries()


compat.apply()
compat.call_after_import('mmaction.registry', _extend_registries)
lazy_package(__name__, dict(
    apis=['SlidingClassifier', 'VideoClassifier', 'get_model', 'list_models'],
    backbones=[], convert=[], datasets=[], engine=[], evaluation=[], export=[],
    heads=[], layers=[], live=['OnlineDetector'], losses=[], online=[], ops=[],
    recognizers=[], visualization=[]))
