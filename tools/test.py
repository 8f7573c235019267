# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Test a checkpoint on the test set of its config.

The same as ``mmvidattn test``.
"""
import sys

from mmvidattn.commands import main

if __name__ == '__main__':
    main(['test', *sys.argv[1:]])
