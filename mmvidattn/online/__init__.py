# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Online action detection: models of feature streams and videos.

:class:`WindowEncoder` runs clip models on streams.
"""
from .mat import MAT
from .miniroad import MiniROAD
from .online_video_encoder import CarriedState, ClipPlace, OnlineVideoEncoder
from .preprocessors import FeatureStreamPreprocessor, VideoStreamPreprocessor
from .stream_session import StreamSession, make_stream_step, stream_videos
from .stream_step import StreamStep
from .testra import TeSTra
from .window_encoder import WindowEncoder
from .windows import dense_features

__all__ = [
    'MAT', 'CarriedState', 'ClipPlace', 'FeatureStreamPreprocessor',
    'MiniROAD', 'OnlineVideoEncoder', 'StreamSession', 'StreamStep', 'TeSTra',
    'VideoStreamPreprocessor', 'WindowEncoder', 'dense_features',
    'make_stream_step', 'stream_videos'
]
