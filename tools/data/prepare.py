# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Prepare a downloaded data set for training.

The same as ``mmvidattn prepare``.
"""
import sys

from mmvidattn.commands import main

if __name__ == '__main__':
    main(['prepare', *sys.argv[1:]])
