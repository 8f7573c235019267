# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Metrics for online detection, events, anticipation and EPIC-Kitchens-100."""
from .average_precision import (
    average_precision,
    calibrated_average_precision,
    stage_masks,
)
from .epic_submission import EpicSubmission
from .event_metrics import (
    EventAlarms,
    EventAP,
    EventF1,
    EventStartAP,
    FrameCalibration,
)
from .mean_top_k_recall_metric import MeanTopKRecall, mean_top_k_recall
from .per_frame_map import PerFrameMAP
from .segment_scores import marginal_scores
from .verb_noun_accuracy import VerbNounAccuracy

__all__ = [
    'EpicSubmission', 'EventAP', 'EventAlarms', 'EventF1', 'EventStartAP',
    'FrameCalibration', 'MeanTopKRecall', 'PerFrameMAP', 'VerbNounAccuracy',
    'average_precision', 'calibrated_average_precision', 'marginal_scores',
    'mean_top_k_recall', 'stage_masks']
