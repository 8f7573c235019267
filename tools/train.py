# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Train a model.

The same as ``mmvidattn train``.
"""
import sys

from mmvidattn.commands import main

if __name__ == '__main__':
    main(['train', *sys.argv[1:]])
