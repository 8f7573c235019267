# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Fine-tuning on your own videos: ``mmvidattn finetune``.

The modules, in the order in which a run uses them:

- ``options``: options of a run;
- ``run``: prepare, train, test and resume;
- ``plan``: check, ``split`` and summarize clips or ``events``;
- ``clips``, ``streams``: config, features and results of the two kinds of
  models;
- ``training``: schedule, console output, checkpoints and test;
- ``report``: metrics and images.
"""
from .options import FineTuneOptions

__all__ = ['FineTuneOptions']
