# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""List and clear the cached features of frozen networks.

The same as ``mmvidattn feature-cache``.
"""
from mmvidattn.cli.feature_cache import main

if __name__ == '__main__':
    main()
