# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Pictures and videos of what a model says."""
from .annotate import OUTPUTS, VideoWriter, annotate_video, write_sheet

__all__ = ['OUTPUTS', 'VideoWriter', 'annotate_video', 'write_sheet']
