# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Online action detection: models that read streams of features.

:class:`WindowEncoder` runs models of clips on streams as well.
"""
from .dense import dense_features
from .feature_stream_preprocessor import FeatureStreamPreprocessor
from .stream_session import StreamSession
from .stream_step import StreamStep
from .stream_videos import stream_videos
from .testra import TeSTra
from .window_encoder import WindowEncoder

__all__ = [
    'FeatureStreamPreprocessor', 'StreamSession', 'StreamStep', 'TeSTra',
    'WindowEncoder', 'dense_features', 'stream_videos'
]
