# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Subcommands of ``mmvidattn``: one module with a ``main`` for each."""
