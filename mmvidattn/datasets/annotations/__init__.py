# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Readers of annotations: ``own``, which users write, and ``published``."""
