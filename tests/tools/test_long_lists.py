# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""A file of results for each video, by a plain loop and by Ray."""
import faulthandler
import json
import os
import shutil
import signal
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from live_fixtures import write_tsn

from mmvidattn.apis import VideoClassifier
from mmvidattn.apis.many_videos import (
    plan_videos,
    process_videos,
    run_with_ray,
)
from mmvidattn.utils.remote_files import local_path

# Paths of the readable videos below the folder, by their names.
VIDEOS = dict(a='a.mp4', c='c.mp4', sub_a='sub/a.mp4')


@pytest.fixture(scope='module')
def folder(motion_dir, tmp_path_factory):
    """Folder with three videos, one in a subfolder, and a broken one."""
    path = tmp_path_factory.mktemp('videos')
    (path / 'sub').mkdir()
    for i, name in enumerate(VIDEOS.values()):
        shutil.copy(motion_dir / f'val/{i:06}.mp4', path / name)
    (path / 'broken.mp4').write_bytes(b'no video')
    return path


def test_predictions_continue_and_report_bad_videos(
        run_main, folder, small_config, small_checkpoint, tmp_path, capsys):
    """A broken video and a missing result interrupt the command."""
    videos, out = tmp_path / 'list.csv', tmp_path / 'out'
    videos.write_text('source,name\n' + ''.join(
        f'{folder}/{path},{name}\n'
        for name, path in dict(VIDEOS, broken='broken.mp4').items()))

    def run(checkpoint, error):
        with pytest.raises(SystemExit, match=error):
            run_main('predict', videos, small_config, checkpoint, '--json',
                     out, '--device', 'cpu')
        return capsys.readouterr().out

    broken = f'error: {folder}/broken.mp4: '
    assert '3 videos written, 0 existed already, 1 failed' in run(
        small_checkpoint, broken)
    classifier = VideoClassifier(small_config, small_checkpoint)
    files = [out / f'{name}.json' for name in VIDEOS]
    for file, path in zip(files, VIDEOS.values()):
        assert json.loads(file.read_text()) == classifier(
            str(folder / path)).as_dict()
    times = [file.stat().st_mtime_ns for file in files]
    files[1].unlink()
    assert '1 video written, 2 existed already, 1 failed' in run(
        small_checkpoint, broken)
    again = [file.stat().st_mtime_ns for file in files]
    assert again[::2] == times[::2] and again[1] > times[1]
    # Results of other options do not mix with them.
    run(shutil.copy(small_checkpoint, tmp_path / 'other.pth'),
        'checkpoint was .* and now is .*oth')


@pytest.mark.parametrize('text, error', [
    ('path\na.mp4\n', 'must have columns source, got path'),
    ('source,name\na.mp4\n', 'line 2: expected 2 fields'),
    ('source,name\na.mp4,../b\n', "name must be a file name, got '../b'"),
    ('source,name\na.mp4,x\nb.mp4,x\n', 'would both have the name x'),
    ('source,name\n,x\n', 'must have a path in each row'),
    ('source\n', 'at least one row')])
def test_rejects_lists(tmp_path, text, error):
    (tmp_path / 'list.csv').write_text(text)
    with pytest.raises(ValueError, match=error):
        plan_videos([tmp_path / 'list.csv'])


def test_names_of_a_list(tmp_path):
    path = tmp_path / 'list.txt'
    path.write_text('v/a/1.mp4\n\nv/b/1.mp4\ns3://b/2.mp4\n')
    assert plan_videos([path]).keys() == {
        f'{tmp_path}/v/a/1.mp4', f'{tmp_path}/v/b/1.mp4', 's3://b/2.mp4'}
    for root, end in ('v', ''), ('https://x', '?sig=b/c'):
        path.write_text(f'{root}/a/1.mp4{end}\n{root}/b/1.mp4{end}\n')
        assert [*plan_videos([path]).values()] == ['a_1', 'b_1']
    assert [*plan_videos(['https://u:p/w@x/a.mp4?sig=b/c']).values()] == ['a']


def test_failed_videos_are_named_without_secrets(
        tmp_path, capsys, monkeypatch):
    monkeypatch.setenv('XDG_CACHE_HOME', str(tmp_path / 'cache'))
    videos = plan_videos(['http://u:secret@127.0.0.1:9/a.mp4?token=secret'])
    with pytest.raises(ValueError, match='http://127.0.0.1:9/a.mp4: '):
        process_videos(
            'Reading', videos, tmp_path, '.npy',
            lambda source, name: local_path(source),
            engine=None, processes=1, device='cpu')
    assert 'secret' not in ''.join(capsys.readouterr())


def work(out, source, name):
    """Behave as the name of a video says."""
    with (out / 'calls').open('a') as file:
        file.write(f'{source}\n')
    if 'crash' in name:
        faulthandler.disable()
        os.kill(os.getpid(), signal.SIGSEGV)
    if 'bad' in name:
        raise ValueError('no frames')
    (out / f'{name}.npy').write_text(source)


@pytest.fixture(scope='module')
def ray():
    ray = pytest.importorskip('ray', reason='needs mmvidattn[ray]')
    pytest.importorskip('ray.data', reason='needs mmvidattn[ray]')
    # Workers import this module.
    here = Path(__file__).resolve().parent
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv('PYTHONPATH', os.pathsep.join(
            [str(here), str(here.parent), os.environ.get('PYTHONPATH', '')]))
        ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False,
                 object_store_memory=100 * 2**20)
        yield ray
        ray.shutdown()


def test_ray_reports_bad_videos_and_crashes(ray, tmp_path):
    names = 'a', 'bad', 'b', 'crash', 'c'
    found = dict(run_with_ray({f'{name}.mp4': name for name in names},
                              partial(work, tmp_path), 2, 'cpu'))
    assert found.keys() == {f'{name}.mp4' for name in names}
    assert found.pop('bad.mp4') == 'ValueError: no frames'
    assert found.pop('crash.mp4') == (
        'its process crashed, or its machine was lost, 2 times')
    assert {*found.values()} == {''}
    assert {path.stem for path in tmp_path.glob('*.npy')} == {*'abc'}
    calls = (tmp_path / 'calls').read_text().split()
    assert calls.count('crash.mp4') == 2 and calls.count('bad.mp4') == 1


@pytest.fixture
def extract(run_main, folder, tmp_path, capsys):
    """Function that extracts features; return its counts of videos."""
    # Random weights are the same in each process.
    config = write_tsn(tmp_path / 'tsn.py', False)

    def extract(out, *options):
        with pytest.raises(SystemExit, match=f'error: {folder}/broken.mp4: '):
            run_main('extract-features', folder, tmp_path / out, config,
                     '--device', 'cpu', *options)
        return capsys.readouterr().out

    return extract


def test_features_continue_and_report_bad_videos(extract, tmp_path):
    assert '3 videos written, 0 existed already, 1 failed' in extract('out')
    files = [tmp_path / f'out/{name}.npy' for name in VIDEOS]
    before = [np.load(file) for file in files]
    files[1].unlink()
    assert '1 video written, 2 existed already, 1 failed' in extract('out')
    assert all(map(np.array_equal, before, map(np.load, files)))


def test_ray_extracts_the_features_of_a_plain_run(ray, extract, tmp_path):
    extract('plain')
    extract('ray', '--engine', 'ray')
    for name in VIDEOS:
        np.testing.assert_allclose(
            np.load(tmp_path / f'ray/{name}.npy'),
            np.load(tmp_path / f'plain/{name}.npy'), rtol=1e-5, atol=1e-6)
