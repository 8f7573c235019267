# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Online action detection: models of feature streams and videos.

:class:`WindowEncoder` runs clip models on streams.
"""
from ..lazy import lazy_package

lazy_package(__name__, dict(
    mat=['MAT'],
    miniroad=['MiniROAD'],
    online_video_encoder=['CarriedState', 'ClipPlace', 'OnlineVideoEncoder'],
    preprocessors=['FeatureStreamPreprocessor', 'VideoStreamPreprocessor'],
    stream_session=['StreamSession', 'make_stream_step', 'stream_videos'],
    stream_step=['StreamStep'],
    testra=['TeSTra'],
    window_encoder=['WindowEncoder'],
    windows=['dense_features']))
