# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""A killed training resumes, and ends as if nothing had happened.

The environment variable ``KILLS`` sets the number of kills of each training.
"""
import os
import random
import signal

import pytest
from killed_runs import Training, compare, write_config

from tools.data.online.make_synthetic import Recipe, make_synthetic

KILLS = int(os.environ.get('KILLS', 3))


@pytest.fixture(scope='module')
def stream_dir(tmp_path_factory):
    out = tmp_path_factory.mktemp('streams') / 'set'
    make_synthetic(out, 9, 4, 0, Recipe(steps=100, cue_steps=(40, 60)))
    return out


@pytest.mark.slow
@pytest.mark.parametrize('kind, workers, processes, number', [
    ('clip', 0, 1, 'SIGKILL'), ('clip', 2, 1, 'SIGKILL'),
    ('stream', 0, 1, 'SIGKILL'), ('stream', 2, 1, 'SIGKILL'),
    ('clip', 1, 2, 'SIGKILL'), ('clip', 1, 1, 'SIGTERM'),
    ('mmaction', 1, 1, 'SIGKILL')])
def test_ends_bit_equal(kind, workers, processes, number, motion_dir,
                        stream_dir, tmp_path):
    data = stream_dir if kind == 'stream' else motion_dir
    config = write_config(
        tmp_path / 'config.py', kind, data, processes, workers)
    codes, text = Training(config, tmp_path / 'reference', processes).wait()
    assert not any(codes), text[-3000:]
    steps = text.count('Epoch(train)')
    assert steps >= 12
    number = signal.Signals[number]
    rng = random.Random(f'{kind} {workers} {processes}')
    for kill in range(KILLS):
        out = tmp_path / f'run_{kill}'
        run = Training(config, out, processes)
        run.kill(number, rng.randint(1, steps - 1), rng)
        codes, text = run.wait()
        assert set(codes) == {143 if number == signal.SIGTERM else -9}, text
        codes, text = Training(config, out, processes, resume=True).wait()
        assert not any(codes), text[-3000:]
        assert compare(out, tmp_path / 'reference') == []
