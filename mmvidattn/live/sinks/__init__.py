# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Sinks of a run's detections: files and messages."""
from .base import EventSink, Sink, TryAgain

__all__ = ['EventSink', 'Sink', 'TryAgain']
