# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Run cases of tools/benchmark in the process of a test."""
import json

from tools.benchmark import run


def run_case(name, *args, out=None):
    """Run a case, and return its JSON result if ``out`` is a folder."""
    argv = [name, *map(str, args)]
    # Options that take any number of values must stay last.
    argv[1:1] = ['--device', 'cpu']
    if out is not None:
        argv[1:1] = ['--json', str(out / f'{name}.json')]
    run.main(argv)
    return out and json.loads((out / f'{name}.json').read_text())
