# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Work of the longer subcommands; ``mmvidattn.cli`` reads their options.

Each module has a function ``run``, which takes the parsed options.
"""
