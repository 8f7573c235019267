# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Online action detection: models of feature streams and videos.

:class:`WindowEncoder` runs clip models on streams.
"""
from .carried_state import CarriedState, ClipPlace
from .dense import dense_features
from .feature_stream_preprocessor import FeatureStreamPreprocessor
from .make_stream_step import make_stream_step
from .mat import MAT
from .miniroad import MiniROAD
from .online_video_encoder import OnlineVideoEncoder
from .stream_session import StreamSession
from .stream_step import StreamStep
from .stream_videos import stream_videos
from .testra import TeSTra
from .video_stream_preprocessor import VideoStreamPreprocessor
from .window_encoder import WindowEncoder

__all__ = [
    'MAT', 'CarriedState', 'ClipPlace', 'FeatureStreamPreprocessor',
    'MiniROAD', 'OnlineVideoEncoder', 'StreamSession', 'StreamStep', 'TeSTra',
    'VideoStreamPreprocessor', 'WindowEncoder', 'dense_features',
    'make_stream_step', 'stream_videos'
]
