# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Prepare a published data set: from downloads to a folder that trains.

The same as ``mmvidattn prepare``.
"""
from mmvidattn.cli.prepare import main

if __name__ == '__main__':
    main()
