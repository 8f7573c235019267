# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""The former name of `run.py vivit`."""
import sys

from run import main

if __name__ == '__main__':
    main(['vivit', *sys.argv[1:]])
