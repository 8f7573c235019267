# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Programs that are not part of the package; tests import them from here."""
