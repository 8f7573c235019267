# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Subcommands of ``mmvidattn``, a module with a function ``main`` each.

The modules import only Python's standard library. ``main`` parses the options
before it imports other modules, so that ``--help`` and errors in the options
appear at once.
"""
