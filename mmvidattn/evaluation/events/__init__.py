# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Metrics of events: segments with a start, an end, a class and a score."""
from ...online.frame_scores import FrameScores
from .calibration import Calibration
from .event_ap import ACTIVITYNET, OFFSETS, THUMOS14, SegmentAP, StartAP
from .event_counts import Alarms, EditScore, SegmentF1
from .labeled_events import Events, LabeledEvents, detect_events, label_events
from .score_events import EventScores, Interval, bootstrap, score_events
from .tune_thresholds import tune_thresholds

__all__ = [
    'ACTIVITYNET', 'Alarms', 'Calibration', 'EditScore', 'EventScores',
    'Events', 'FrameScores', 'Interval', 'LabeledEvents', 'OFFSETS',
    'SegmentAP', 'SegmentF1', 'StartAP', 'THUMOS14', 'bootstrap',
    'detect_events', 'label_events', 'score_events', 'tune_thresholds']
