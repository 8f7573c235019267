# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Metrics of events: segments with a start, an end, a class and a score."""
from ...online.frame_scores import FrameScores
from .alarms import Alarms
from .bootstrap import Interval, bootstrap
from .calibration import Calibration
from .detect_events import detect_events, step_targets
from .labeled_events import Events, LabeledEvents, label_events
from .ranking import Ranking
from .score_events import EventScores, score_events
from .segment_ap import ACTIVITYNET, THUMOS14, SegmentAP
from .segment_f1 import EditScore, SegmentF1, edit_distance
from .start_ap import OFFSETS, StartAP
from .tune_thresholds import tune_thresholds

__all__ = [
    'ACTIVITYNET', 'Alarms', 'Calibration', 'EditScore', 'EventScores',
    'Events', 'FrameScores', 'Interval', 'LabeledEvents', 'OFFSETS', 'Ranking',
    'SegmentAP', 'SegmentF1', 'StartAP', 'THUMOS14', 'bootstrap',
    'detect_events', 'edit_distance', 'label_events', 'score_events',
    'step_targets', 'tune_thresholds']
