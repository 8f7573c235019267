# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Check every video of a list: which cannot be read, and why.

The same as ``mmvidattn check-videos``.
"""
from mmvidattn.cli.check_videos import main

if __name__ == '__main__':
    main()
