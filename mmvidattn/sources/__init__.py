# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Sources of frames: files, folders, cameras and network streams."""
from ..lazy import lazy_package

lazy_package(__name__, dict(
    files=['MAX_GAP', 'Frame', 'FrameFolder', 'RecordedSource', 'Source',
           'VideoFile'],
    network=['LiveSource'],
    open_source=['open_source']))
