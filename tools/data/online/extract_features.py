# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Turn videos into feature streams with any network.

The same as ``mmvidattn extract-features``.
"""
from mmvidattn.cli.extract_features import main

if __name__ == '__main__':
    main()
