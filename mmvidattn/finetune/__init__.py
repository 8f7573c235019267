# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Fine-tuning on your own videos: ``mmvidattn finetune``.

The modules, in the order in which a run uses them:

- ``options``: options of a run;
- ``run``: training, and resuming;
- ``clips``: preparation and results for classifiers of clips, with the modules
  below;
- ``streams``: the same for detectors of events in long videos;
- ``plan``: check and summarize the videos;
- ``split``: split the videos;
- ``config``: config of the training;
- ``training``: files, console output, number of epochs, and test;
- ``report``: metrics and images.
"""
from .options import FineTuneOptions

__all__ = ['FineTuneOptions']
