# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Check a set of feature streams, and say what is wrong with it.

The same as ``mmvidattn check-features``.
"""
from mmvidattn.cli.check_features import main

if __name__ == '__main__':
    main()
