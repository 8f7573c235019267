# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Files of annotation programs: one module with a reader and a writer each.

``json_file`` and ``xml_file`` read files so that errors name the line,
``videos`` finds the annotated videos in a folder, and ``files`` has the
functions that read and write any format.
"""
from .base import Annotations, VideoInfo
from .files import FORMATS, read_annotations, write_annotations
from .videos import VideoFolder

__all__ = [
    'FORMATS', 'Annotations', 'VideoFolder', 'VideoInfo', 'read_annotations',
    'write_annotations'
]
