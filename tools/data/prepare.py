# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Prepare a downloaded data set for training.

The same as ``mmvidattn prepare``.
"""
from mmvidattn.cli.prepare import main

if __name__ == '__main__':
    main()
