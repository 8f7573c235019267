# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Data sets and checkpoints whose files are URLs."""
import io

import numpy as np
import pytest
import torch
from mmaction.registry import DATASETS
from mmengine.runner.checkpoint import CheckpointLoader
from safetensors.torch import save

from mmvidattn.datasets.check_files import find_fault
from mmvidattn.utils.checkpoint import load_state_dict_file
from mmvidattn.utils.remote_files import RemoteError, local_path

fsspec = pytest.importorskip('fsspec', reason='needs mmvidattn[remote]')
PIPELINE = [
    dict(type='DecordInit'),
    dict(type='SampleFrames', clip_len=4, num_clips=1, test_mode=True),
    dict(type='DecordDecode'),
    dict(type='Resize', scale=(16, 16), keep_ratio=False),
    dict(type='FormatShape', input_format='NCTHW'),
    dict(type='PackActionInputs')]


@pytest.fixture
def store(tmp_path, monkeypatch):
    """Object store in memory, with an empty folder ``b``."""
    monkeypatch.setenv('XDG_CACHE_HOME', str(tmp_path / 'cache'))
    memory = fsspec.filesystem('memory')
    memory.mkdirs('/b', exist_ok=True)
    yield memory
    memory.rm('/b', recursive=True)


@pytest.fixture
def videos(store, motion_dir):
    """Two videos, a text file with the suffix of a video, and a list."""
    for name in '01':
        store.pipe(f'/b/videos/{name}.mp4',
                   (motion_dir / f'train/00000{name}.mp4').read_bytes())
    store.pipe('/b/videos/bad.mp4', b'not a video')
    store.pipe('/b/list.txt', b'0.mp4 3\n1.mp4 1\n')
    return motion_dir


def build(**options):
    return DATASETS.build(dict(
        type='CheckedVideoDataset', pipeline=PIPELINE,
        **dict(ann_file='list.txt', data_root='memory://b',
               data_prefix=dict(video='videos')) | options))


def local(videos, name):
    """The same dataset of local files."""
    (videos / name).write_text('000000.mp4 3\n000001.mp4 1\n')
    return build(ann_file=name, data_root=str(videos),
                 data_prefix=dict(video='train'), test_mode=True)


def test_videos_equal_local_videos(videos):
    remote, here = build(test_mode=True), local(videos, 'here.txt')
    for i in range(2):
        a, b = remote[i], here[i]
        assert torch.equal(a['inputs'], b['inputs'])
        assert a['data_samples'].gt_label == b['data_samples'].gt_label
        assert a['data_samples'].filename == f'memory://b/videos/{i}.mp4'


def test_bad_and_missing_videos_are_reported(videos, store, logged):
    store.pipe('/b/list.txt',
               b'bad.mp4 0\nmissing.mp4?sig=secret 0\n0.mp4 3\n')
    dataset = build()
    assert dataset.prepare_data(0) is None
    assert dataset.prepare_data(1) is None
    reasons = dataset.prepare_data(2)['data_samples'].skipped_reasons
    assert list(reasons) == ['memory://b/videos/bad.mp4',
                             'memory://b/videos/missing.mp4']
    assert 'FileNotFoundError' in reasons['memory://b/videos/missing.mp4']
    assert not any('secret' in line for line in logged)
    kept = build(test_mode=True, on_error='skip')
    assert [info['filename'] for info in map(kept.get_data_info,
                                             range(len(kept)))] == [
        'memory://b/videos/0.mp4']
    assert any('videos/missing.mp4 (FileNotFoundError' in line
               for line in logged)


def test_a_lost_server_stops_the_run_instead_of_skipping(videos, store,
                                                         monkeypatch):
    dataset = build(on_error='skip')

    def away(*_):
        raise ConnectionResetError('away')

    monkeypatch.setattr(type(store), 'get_file', away)
    with pytest.raises(RemoteError, match='memory://b/videos/0.mp4'):
        dataset[0]
    with pytest.raises(RemoteError, match='memory://b/videos/1.mp4'):
        find_fault('memory://b/videos/1.mp4')


def npy(array):
    buffer = io.BytesIO()
    np.save(buffer, array)
    return buffer.getvalue()


def test_feature_streams_equal_local_files(store, tmp_path):
    rng = np.random.default_rng(0)
    for root in 'memory', 'here':
        rng = np.random.default_rng(0)
        for name in 'u', 'v':
            files = dict(rgb=rng.standard_normal((40, 3), np.float32),
                         target_perframe=np.eye(4)[rng.integers(4, size=40)])
            for folder, array in files.items():
                if root == 'memory':
                    store.pipe(f'/b/{folder}/{name}.npy', npy(array))
                else:
                    (tmp_path / folder).mkdir(exist_ok=True)
                    np.save(tmp_path / folder / f'{name}.npy', array)
    store.pipe('/b/videos.txt', b'u\nv\n')
    store.pipe('/b/classes.txt', b'none\na\nb\nc\n')
    (tmp_path / 'videos.txt').write_text('u\nv\n')
    options = dict(
        type='FeatureStreamDataset', ann_file='videos.txt',
        data_prefix=dict(rgb='rgb', gt_action='target_perframe'),
        long_steps=8, work_steps=4, windows='non_overlapping', test_mode=True,
        pipeline=[], metainfo=dict(classes='memory://b/classes.txt'))
    remote = DATASETS.build(dict(options, data_root='memory://b'))
    here = DATASETS.build(dict(options, data_root=str(tmp_path)))
    assert len(remote) == len(here) == 20
    assert remote.metainfo['classes'] == ['none', 'a', 'b', 'c']
    for i in range(len(here)):
        a, b = remote.get_data_info(i), here.get_data_info(i)
        video = a['video']
        assert np.array_equal(
            remote.streams.read('rgb', video, np.arange(40)),
            here.streams.read('rgb', b['video'], np.arange(40)))
    with pytest.raises(FileNotFoundError):
        local_path('memory://b/rgb/w.npy')


@pytest.mark.parametrize('name, write', [
    ('a.pth', lambda weights: _saved(weights)),
    ('a.safetensors', save)])
def test_checkpoints(store, name, write):
    weights = dict(w=torch.arange(3.))
    store.pipe(f'/b/{name}', write(weights))
    url = f'memory://b/{name}'
    assert torch.equal(load_state_dict_file(url)['w'], weights['w'])
    assert torch.equal(
        CheckpointLoader.load_checkpoint(url, 'cpu')['w'], weights['w'])


def _saved(weights):
    buffer = io.BytesIO()
    torch.save(weights, buffer)
    return buffer.getvalue()
