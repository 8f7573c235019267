# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Programs whose files are on an S3 server that is stopped for 20 seconds."""
import os
import re
import shutil
import subprocess
import sys
import time
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest
import torch

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from killed_runs import write_config
from s3_server import S3Server

OUTAGE = 20
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        not all(map(find_spec, ('s3fs', 'moto', 'flask', 'flask_cors'))),
        reason='needs s3fs, moto, flask and flask_cors')]


@pytest.fixture(scope='module')
def server(motion_dir, tmp_path_factory):
    folder = tmp_path_factory.mktemp('buckets')
    shutil.copytree(motion_dir, folder / 'motion')
    (folder / 'runs').mkdir()
    server = S3Server(folder)
    server.start()
    yield server
    server.stop()


@pytest.fixture
def env(server, tmp_path):
    """Environment of a program; its cache has room for a few videos."""
    size = max(path.stat().st_size
               for path in (server.folder / 'motion').rglob('*.mp4'))
    return {**os.environ, **server.env, 'OMP_NUM_THREADS': '1',
            'XDG_CACHE_HOME': str(tmp_path / 'cache'),
            'MMVIDATTN_CACHE_GB': str(8 * size / 1e9)}


def start(env, *arguments):
    return subprocess.Popen(
        [sys.executable, '-m', 'mmvidattn', *map(str, arguments)], env=env,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


def finish(process):
    text, _ = process.communicate(timeout=900)
    assert process.returncode == 0, text[-3000:]
    return text


def interrupt(server, wait_for=lambda: True, process=None):
    """Stop the server for a while when a condition becomes true."""
    while not wait_for():
        assert process.poll() is None, process.communicate()[0][-3000:]
        time.sleep(.05)
    server.stop()
    time.sleep(OUTAGE)
    assert process is None or process.poll() is None
    server.start()


@pytest.fixture(scope='module')
def reference(motion_dir, tmp_path_factory):
    """Folder of a training from local files."""
    folder = tmp_path_factory.mktemp('reference')
    config = write_config(
        folder / 'config.py', 'clip', motion_dir, workers=2)
    finish(start({**os.environ, 'OMP_NUM_THREADS': '1'}, 'train', config,
                 '--work-dir', folder / 'run'))
    return folder / 'run'


def assert_equal_weights(a, b):
    a, b = (torch.load(path / 'iter_12.pth', weights_only=True)
            for path in (a, b))
    for part in 'state_dict', 'ema_state_dict':
        assert a[part].keys() == b[part].keys()
        assert all(torch.equal(a[part][name], b[part][name])
                   for name in a[part])
    states = [x['optimizer']['state'] for x in (a, b)]
    assert states[0].keys() == states[1].keys() and states[0]
    assert all(torch.equal(states[0][i][name], states[1][i][name])
               for i in states[0] for name in ('exp_avg', 'exp_avg_sq'))


def test_training_continues(server, env, reference, tmp_path):
    config = write_config(
        tmp_path / 'config.py', 'clip', 's3://motion', workers=2)
    process = start(env, 'train', config, '--work-dir', tmp_path / 'run')
    interrupt(server, (tmp_path / 'run/iter_3.pth').exists, process)
    text = finish(process)
    assert re.search(r's3://motion/\S+: .*retrying for up to 300 s', text)
    assert 'Skipped s3:' not in text
    assert_equal_weights(tmp_path / 'run', reference)


def test_resuming_waits_for_the_server(server, env, reference, tmp_path):
    config = write_config(
        tmp_path / 'config.py', 'clip', 's3://motion', workers=2)
    process = start(env, 'train', config, '--work-dir', tmp_path / 'run')
    while not (tmp_path / 'run/iter_6.pth').exists():
        assert process.poll() is None
        time.sleep(.05)
    process.kill()
    process.communicate()
    shutil.move(tmp_path / 'run/iter_6.pth', server.folder / 'runs/a.pth')
    server.stop()
    # The checkpoint has more bytes than eight videos.
    env = {**env, 'MMVIDATTN_CACHE_GB': '0.01'}
    process = start(env, 'train', config, '--work-dir', tmp_path / 'other',
                    '--resume', 's3://runs/a.pth')
    interrupt(server, process=process)
    text = finish(process)
    assert 'retrying for up to 300 s' in text
    assert_equal_weights(tmp_path / 'other', reference)


def test_extraction_continues(server, env, reference, tmp_path):
    names = sorted(path.name for path in
                   (server.folder / 'motion/train').glob('*.mp4'))
    (tmp_path / 'urls.txt').write_text(''.join(
        f's3://motion/train/{name}\n' for name in names))
    config = write_config(
        tmp_path / 'config.py', 'clip', 's3://motion', workers=2)
    shutil.copy(reference / 'iter_12.pth', server.folder / 'runs/b.pth')
    server.stop()
    server.start()
    env = {**env, 'MMVIDATTN_CACHE_GB': '0.01'}
    options = [config, '--rate', '10', '--processes', '2']
    process = start(env, 'extract-features', tmp_path / 'urls.txt',
                    tmp_path / 'remote', *options, '--checkpoint',
                    's3://runs/b.pth', '--engine', 'local')
    interrupt(server, lambda: any((tmp_path / 'remote').rglob('*.npy')),
              process)
    finish(process)
    finish(start(env, 'extract-features', server.folder / 'motion/train',
                 tmp_path / 'here', *options, '--checkpoint',
                 reference / 'iter_12.pth'))
    found = {path.stem[-6:]: path for path in
             (tmp_path / 'remote').rglob('*.npy')}
    assert len(found) == len(names)
    for path in (tmp_path / 'here').rglob('*.npy'):
        assert np.array_equal(np.load(path), np.load(found[path.stem[-6:]]))
