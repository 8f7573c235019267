# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Images and videos of a model's results."""
from .annotate import OUTPUTS, VideoWriter, annotate_video, write_sheet

__all__ = ['OUTPUTS', 'VideoWriter', 'annotate_video', 'write_sheet']
