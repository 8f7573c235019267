# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Online action detection: models of feature streams and videos.

:class:`CachedFrameEncoder` runs clip models on streams.
"""
from ..lazy import lazy_package

# Default scores that start and end an action, and its least duration. They
# stand here, so that a help text need not import numpy.
ON, OFF, MIN_DURATION = 0.5, 0.3, 0.5

lazy_package(__name__, dict(
    cached_frame_encoder=['CachedFrameEncoder'],
    feature_inputs=['dense_features'],
    mat=['MAT'],
    miniroad=['MiniROAD'],
    online_video_encoder=['CarriedState', 'ClipPlace', 'OnlineVideoEncoder'],
    preprocessors=['FeatureStreamPreprocessor', 'VideoStreamPreprocessor'],
    stream_session=['StreamSession', 'make_stream_step', 'stream_videos'],
    stream_step=['StreamStep'],
    testra=['TeSTra']))
