# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""``python -m mmvidattn.ops``: print which code runs when."""
from .dispatch import table

print(table())
