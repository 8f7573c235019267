# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Annotation files of published data sets."""
