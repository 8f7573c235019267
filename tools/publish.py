# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Write a release of a training: its weights and its config.

The same as ``mmvidattn publish``.
"""
from mmvidattn.cli.publish import main

if __name__ == '__main__':
    main()
