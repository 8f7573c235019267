# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""A job whose items are names of tiny files, and its expected outputs."""
import faulthandler
import hashlib
import os
import signal
import time
from functools import partial
from pathlib import Path

import numpy as np
import pyarrow.parquet

from mmvidattn.corpus.job import Job
from mmvidattn.corpus.manifest import open_manifest
from mmvidattn.corpus.run import run_corpus
from mmvidattn.utils.files import replacing

COLUMNS = dict(shape='list<int64>', file='string', values='list<float>')


def features(source):
    """Return an array that depends on the name of a file."""
    seed = hashlib.sha256(Path(source).name.encode()).digest()
    draw = np.random.default_rng([*seed])
    return draw.random((seed[0] % 5 + 1, 3), np.float32)


def make(out, pause):
    """Return a function that a name can crash, and that logs its calls."""

    def work(item):
        with open(out.parent / 'calls.txt', 'a') as file:
            file.write(f'{item.index}\n')
        time.sleep(pause)
        if 'crash' in item.name:
            # Do not print a report.
            faulthandler.disable()
            os.kill(os.getpid(), signal.SIGSEGV)
        if 'bad' in item.name:
            raise ValueError('no frames')
        rows = features(item.source)
        path = out / f'{item.name}.npy'
        with replacing(path, to_disk=False, shared=True) as part, \
                part.open('wb') as file:
            np.save(file, rows)
        return dict(shape=[*rows.shape], file=path.name, values=rows.ravel())

    return work


def run(out, inputs, shard_size=10, pause=0., processes=1, engine='local',
        shard=None, lease=60., start_method='fork'):
    """Run the job in a folder, and return the faults."""
    out.mkdir(parents=True, exist_ok=True)
    manifest = open_manifest(out, inputs, shard_size)
    job = Job('Testing', partial(make, out, pause), COLUMNS, processes,
              pool=dict(start_method=start_method))
    return run_corpus(out, manifest, job, engine, shard, lease)


def outputs(out):
    """Return the bytes of all files of results by their names."""
    return {path.relative_to(out).as_posix(): path.read_bytes()
            for path in out.rglob('*')
            if path.is_file() and path.name[0] != '.'}


def write_list(folder, names):
    """Write the list of videos of a run."""
    path = folder / 'list.txt'
    path.write_text('\n'.join(f'{name}.mp4' for name in names))
    return path


def check_results(out, names):
    """Check that each name occurs once, with its features; return the rows."""
    rows = pyarrow.parquet.read_table(out / 'catalog.parquet').to_pylist()
    assert [row['name'] for row in rows] == names
    assert [row['index'] for row in rows] == [*range(len(names))]
    values = pyarrow.parquet.read_table(out / 'parts').to_pylist()
    values.sort(key=lambda row: row['index'])
    for row, part in zip(rows, values, strict=True):
        assert {**row, 'values': part['values']} == part
        if row['status'] == 'ok':
            expected = features(row['source'])
            assert row['shape'] == [*expected.shape] and row['reason'] == ''
            np.testing.assert_array_equal(
                np.float32(part['values']), expected.ravel())
            np.testing.assert_array_equal(np.load(out / row['file']), expected)
    return rows
