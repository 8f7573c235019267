# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Sources of frames: files, folders, cameras and network streams."""
from .base import MAX_GAP, Frame, RecordedSource, Source
from .files import FrameFolder, VideoFile
from .network import LiveSource
from .open_source import open_source

__all__ = [
    'MAX_GAP', 'Frame', 'FrameFolder', 'LiveSource', 'RecordedSource',
    'Source', 'VideoFile', 'open_source'
]
