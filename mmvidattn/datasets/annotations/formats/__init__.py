# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Files of annotation programs: one module with a reader and a writer each.

``any_format`` reads and writes all formats.
"""
from .any_format import (
    FORMATS,
    choose_format,
    read_annotations,
    write_annotations,
)
from .base import Annotations, VideoInfo
from .summary import summarize
from .videos import VideoFolder

__all__ = [
    'FORMATS', 'Annotations', 'VideoFolder', 'VideoInfo', 'choose_format',
    'read_annotations', 'summarize', 'write_annotations']
