# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Convert published weights to a checkpoint of mmvidattn.

The same as ``mmvidattn convert``.
"""
import sys

from mmvidattn.commands import main

if __name__ == '__main__':
    main(['convert', *sys.argv[1:]])
