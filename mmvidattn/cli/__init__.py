# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""The subcommands of ``mmvidattn``: each module is one, by its ``main``."""
