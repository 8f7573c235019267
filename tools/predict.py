# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Classify videos.

The same as ``mmvidattn predict``.
"""
import sys

from mmvidattn.commands import main

if __name__ == '__main__':
    main(['predict', *sys.argv[1:]])
