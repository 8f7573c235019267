# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Readers of annotation files.

``custom`` reads formats that users write for their own videos. ``formats``
reads and writes the files of annotation programs. ``published`` reads the
files of published data sets.
"""
