# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Detect actions live in a video, a camera or a network stream.

The same as ``mmvidattn stream``.
"""
from mmvidattn.cli.stream import main

if __name__ == '__main__':
    main()
