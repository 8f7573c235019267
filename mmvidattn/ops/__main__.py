# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""``python -m mmvidattn.ops``: print the table of backends."""
from . import examples  # noqa: F401 (registers all backends)
from .dispatch import table

print(table())
