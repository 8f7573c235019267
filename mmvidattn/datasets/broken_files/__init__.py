# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Unreadable files: detect, skip, count and name them.

``guard.py`` decides what happens to a sample that fails to load.
"""
