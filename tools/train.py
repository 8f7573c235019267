# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Train a model.

The same as ``mmvidattn train``.
"""
from mmvidattn.cli.train import main

if __name__ == '__main__':
    main()
