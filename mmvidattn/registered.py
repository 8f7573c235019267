# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Import every package with classes that mmaction2's registries list."""
from . import (  # noqa: F401
    apis,
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
