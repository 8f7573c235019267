# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Files that cannot be read: found, skipped, counted, and named.

``guard.py`` decides what happens to a sample that cannot be loaded.
"""
