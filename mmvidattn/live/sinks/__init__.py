# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""What takes the detections of a run: files, messages, calls."""
from .base import CallbackSink, EventSink, Sink, TryAgain

__all__ = ['CallbackSink', 'EventSink', 'Sink', 'TryAgain']
