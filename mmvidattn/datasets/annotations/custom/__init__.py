# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Annotation formats for users' own videos.

==================  =====================================================
``video_list``      ``<path> <label>`` lines in the format of mmaction2
``segment_csv``     segments of long videos: video, start, end, label
``labeled_videos``  a folder for each class, or a CSV file, to fine-tune
==================  =====================================================
"""
