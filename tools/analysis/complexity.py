# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Count parameters, multiply-accumulates and FLOPs of a config's model.

The same as ``mmvidattn complexity``.
"""
from mmvidattn.cli.complexity import main

if __name__ == '__main__':
    main()
