# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Pictures and videos of what a model says."""
from .annotate import OUTPUTS, annotate_video, write_sheet

__all__ = ['OUTPUTS', 'annotate_video', 'write_sheet']
