# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Run kernels in Triton's interpreter, in a process that selects it."""
import os
import subprocess
import sys
from pathlib import Path

import pytest

FOLDER = Path(__file__).resolve().parent / 'interpreted'
pytest.importorskip('triton')


@pytest.mark.parametrize('marker', [
    'not slow', pytest.param('slow', marks=pytest.mark.slow)])
def test_kernels_in_interpreter(marker):
    run = subprocess.run(
        [sys.executable, '-m', 'pytest', '-q', '-p', 'no:cacheprovider',
         '--noconftest', '-m', marker, *sorted(FOLDER.glob('*.py'))],
        env={**os.environ, 'TRITON_INTERPRET': '1',
             'MMVIDATTN_DISPATCH': 'all'}, capture_output=True,
        text=True, timeout=550)
    assert run.returncode == 0, run.stdout[-5000:] + run.stderr[-2000:]
    assert ' passed' in run.stdout
