# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Subcommands of ``mmvidattn``: one module with a ``main`` for each.

The modules import only Python's standard library. ``main`` reads the options
first and then imports what it needs, so that ``--help`` and errors in the
options appear at once.
"""
