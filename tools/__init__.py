# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Programs beside the package; tests import them as ``tools.<folder>``."""
