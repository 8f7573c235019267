# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Convert published weights into a checkpoint of ours.

The same as ``mmvidattn convert``.
"""
from mmvidattn.cli.convert import main

if __name__ == '__main__':
    main()
