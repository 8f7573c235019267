# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Efficient attention for video, as an extension of mmaction2.

Importing this package first patches the OpenMMLab stack for a current PyTorch
(:mod:`mmvidattn.compat`) and then registers every class of ours in mmaction2's
registries, so that ``custom_imports = dict(imports=['mmvidattn'])`` in a
config is all that is needed.
"""
from typing import Any

from . import compat

compat.apply()

from . import (  # noqa: E402
    apis,  # noqa: E402
    backbones,
    datasets,
    engine,
    evaluation,
    heads,
    layers,
    losses,
    online,
    recognizers,
)
from .apis import (  # noqa: E402
    SlidingClassifier,
    VideoClassifier,
    get_model,
    list_models,
)
from .version import __version__  # noqa: E402

__all__ = [
    'OnlineDetector', 'SlidingClassifier', 'VideoClassifier', '__version__',
    'apis', 'backbones',
    'compat', 'datasets', 'engine', 'evaluation', 'get_model', 'heads',
    'layers', 'list_models', 'losses', 'online', 'recognizers'
]


def __getattr__(name: str) -> Any:
    """Import live detection, and the packages it needs, once it is used."""
    if name == 'OnlineDetector':
        from .live import OnlineDetector
        return OnlineDetector
    raise AttributeError(f'module {__name__!r} has no attribute {name!r}')


# mmvidattn.apis.OnlineDetector works as well, and apis imports no live.
apis.__getattr__ = __getattr__
