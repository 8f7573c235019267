# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Train a detector of events on your own untrimmed videos.

The modules, in the order in which a run uses them:

- ``plan``: check the annotations and the videos, and split them;
- ``prepare``: choose the model that fits into the time, and write the data;
- ``config``: config of the training;
- ``results``: scores, thresholds, metrics and the model.
"""
from .plan import count_entries
from .prepare import complete_options, prepare
from .results import describe_use, write_results

__all__ = ['complete_options', 'count_entries', 'describe_use', 'prepare',
           'write_results']
