# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""The former name of `run.py linear_ff`."""
import sys

from run import main

if __name__ == '__main__':
    main(['linear_ff', *sys.argv[1:]])
