# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Count parameters, multiply-accumulates and FLOPs of a config's model.

The same as ``mmvidattn complexity``.
"""
import sys

from mmvidattn.commands import main

if __name__ == '__main__':
    main(['complexity', *sys.argv[1:]])
