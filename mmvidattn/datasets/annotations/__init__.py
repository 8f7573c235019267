# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Readers of annotation files.

``labeled_videos``, ``video_list`` and ``segment_csv`` read formats that users
write for their own videos, ``published`` reads the files of published data
sets, and ``formats`` reads and writes the files of annotation programs.
"""
