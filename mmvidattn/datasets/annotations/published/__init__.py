# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Readers for the annotation files of published data sets."""
