# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Metrics of events: segments with a start, an end, a class and a score."""
from .alarms import Alarms
from .bootstrap import Interval, bootstrap
from .calibration import Calibration
from .labeled_events import Events, LabeledEvents, label_events
from .ranking import Ranking
from .segment_ap import ACTIVITYNET, THUMOS14, SegmentAP
from .segment_f1 import EditScore, SegmentF1, edit_distance
from .start_ap import OFFSETS, StartAP

__all__ = [
    'ACTIVITYNET', 'Alarms', 'Calibration', 'EditScore', 'Events', 'Interval',
    'LabeledEvents', 'OFFSETS', 'Ranking', 'SegmentAP', 'SegmentF1',
    'StartAP', 'THUMOS14', 'bootstrap', 'edit_distance', 'label_events'
]
