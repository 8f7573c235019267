# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Run one of mmaction2's own tools on a patched stack.

The same as ``mmvidattn upstream``.
"""
from mmvidattn.cli.upstream import main

if __name__ == '__main__':
    main()
