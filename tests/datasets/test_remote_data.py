# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Data sets and checkpoints whose files are URLs."""
import numpy as np
import pytest
import torch
from mmaction.registry import DATASETS
from mmengine.runner.checkpoint import CheckpointLoader
from safetensors.torch import save_file

from mmvidattn.datasets.check_files import check_video
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


def build(root='memory://b', video='videos', **options):
    return DATASETS.build(dict(
        type='CheckedVideoDataset', pipeline=PIPELINE, ann_file='list.txt',
        data_root=root, data_prefix=dict(video=video), **options))


def test_videos_equal_local_videos(videos, motion_dir, tmp_path):
    (tmp_path / 'list.txt').write_text('000000.mp4 3\n000001.mp4 1\n')
    remote = build(test_mode=True)
    here = build(str(tmp_path), str(motion_dir / 'train'), test_mode=True)
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
        check_video('memory://b/videos/1.mp4')


def test_feature_streams_equal_local_files(store, tmp_path):
    rng = np.random.default_rng(0)
    for folder, array in dict(
            rgb=rng.standard_normal((40, 3), np.float32),
            target_perframe=np.eye(4)[rng.integers(4, size=40)]).items():
        (tmp_path / folder).mkdir()
        for name in 'u', 'v':
            path = tmp_path / folder / f'{name}.npy'
            np.save(path, array)
            store.pipe(f'/b/{folder}/{name}.npy', path.read_bytes())
    store.pipe('/b/videos.txt', b'u\nv\n')
    store.pipe('/b/classes.txt', b'none\na\nb\nc\n')
    (tmp_path / 'videos.txt').write_text('u\nv\n')
    remote, here = (DATASETS.build(dict(
        type='FeatureStreamDataset', ann_file='videos.txt', data_root=root,
        data_prefix=dict(rgb='rgb', gt_action='target_perframe'),
        long_steps=8, work_steps=4, windows='non_overlapping', test_mode=True,
        pipeline=[], metainfo=dict(classes='memory://b/classes.txt')))
        for root in ('memory://b', str(tmp_path)))
    assert len(remote) == len(here) == 20
    assert remote.metainfo['classes'] == ['none', 'a', 'b', 'c']
    for video in range(2):
        assert np.array_equal(*(
            one.streams.read('rgb', video, np.arange(40))
            for one in (remote, here)))
    with pytest.raises(FileNotFoundError):
        local_path('memory://b/rgb/w.npy')


@pytest.mark.parametrize('name, write', [
    ('a.pth', torch.save), ('a.safetensors', save_file)])
def test_checkpoints(store, tmp_path, name, write):
    weights = dict(w=torch.arange(3.))
    write(weights, tmp_path / name)
    store.pipe(f'/b/{name}', (tmp_path / name).read_bytes())
    url = f'memory://b/{name}'
    assert torch.equal(load_state_dict_file(url)['w'], weights['w'])
    assert torch.equal(
        CheckpointLoader.load_checkpoint(url, 'cpu')['w'], weights['w'])
