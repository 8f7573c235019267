# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Classify videos.

The same as ``mmvidattn predict``.
"""
from mmvidattn.cli.predict import main

if __name__ == '__main__':
    main()
