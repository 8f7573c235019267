# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Detect actions live in a video, a camera or a network stream.

The same as ``mmvidattn stream``.
"""
import sys

from mmvidattn.commands import main

if __name__ == '__main__':
    main(['stream', *sys.argv[1:]])
