# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Unreadable files: detect, skip, count and report them.

``guard.py`` handles samples that fail to load.
"""
