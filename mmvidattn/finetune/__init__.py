# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Fine-tuning on your own videos: ``mmvidattn finetune``.

In the order in which a run uses them:

- ``options``: the options of a run;
- ``videos``, ``split``: read labeled videos, and split them;
- ``plan``: decode, check and summarize the videos;
- ``config``: the config of the training;
- ``epochs``: the number of epochs that fit into a time;
- ``run``: training, test, and the files in the work directory;
- ``report``: metrics and pictures.
"""
from .options import FineTuneOptions
from .run import finetune

__all__ = ['FineTuneOptions', 'finetune']
