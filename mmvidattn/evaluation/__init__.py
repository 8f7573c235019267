# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Metrics for online detection, events, anticipation and EPIC-Kitchens-100."""
from ..lazy import lazy_package

lazy_package(__name__, dict(
    epic_kitchens=['EpicSubmission', 'VerbNounAccuracy'],
    event_metrics=[
        'EventAlarms', 'EventAP', 'EventF1', 'EventStartAP',
        'FrameCalibration'],
    mean_top_k_recall_metric=['MeanTopKRecall', 'mean_top_k_recall'],
    per_frame_map=[
        'PerFrameMAP', 'average_precision', 'calibrated_average_precision',
        'stage_masks'],
    segment_scores=['marginal_scores']))
