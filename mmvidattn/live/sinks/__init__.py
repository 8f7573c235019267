# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Sinks of a run's detections: files, messages, function calls."""
from .base import CallbackSink, EventSink, Sink, TryAgain

__all__ = ['CallbackSink', 'EventSink', 'Sink', 'TryAgain']
