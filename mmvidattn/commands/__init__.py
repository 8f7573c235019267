# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Implementation of the longer subcommands of ``mmvidattn``.

``mmvidattn.cli`` parses the options, and passes them to ``run`` of a module.
"""
