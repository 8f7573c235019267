# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Fine-tune a model on your own videos.

The same as ``mmvidattn finetune``.
"""
import sys

from mmvidattn.commands import main

if __name__ == '__main__':
    main(['finetune', *sys.argv[1:]])
