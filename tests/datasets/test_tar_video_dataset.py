# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
import io
import json
import tarfile

import pytest
import torch
from mmaction.registry import DATASETS

from mmvidattn.datasets.tar_video_dataset import expand_braces
from mmvidattn.utils.remote_files import fetch

PIPELINE = [
    dict(type='DecordInit'),
    dict(type='SampleFrames', clip_len=4, num_clips=1, test_mode=True),
    dict(type='DecordDecode'),
    dict(type='Resize', scale=(16, 16), keep_ratio=False),
    dict(type='FormatShape', input_format='NCTHW'),
    dict(type='PackActionInputs')]


@pytest.fixture(autouse=True)
def cache_home(tmp_path, monkeypatch):
    monkeypatch.setenv('XDG_CACHE_HOME', str(tmp_path / 'cache'))
    monkeypatch.setattr(fetch, '_held', {})


def write_tar(path, files):
    with tarfile.open(path, 'w') as tar:
        for name, data in files:
            info = tarfile.TarInfo(name)
            info.size = len(data)
            tar.addfile(info, io.BytesIO(data))
    return path


@pytest.fixture
def videos(motion_dir):
    return [(motion_dir / f'train/00000{i}.mp4').read_bytes()
            for i in range(6)]


@pytest.fixture
def shards(videos, tmp_path):
    """Three shards of two videos each, with the label of the video."""
    for shard in range(3):
        write_tar(tmp_path / f'x-{shard:02}.tar', [
            (f'part/clip{i}.{suffix}', data) for i in (2 * shard,
                                                       2 * shard + 1)
            for suffix, data in (('cls', str(i).encode()), ('mp4', videos[i]),
                                 ('txt', b'ignored'))])
    return tmp_path


def build(folder, shards='x-{00..02}.tar', **options):
    return DATASETS.build(dict(
        type='TarVideoDataset', shards=shards, data_root=str(folder),
        pipeline=PIPELINE, **dict(test_mode=True) | options))


def expected(motion_dir, tmp_path, numbers):
    (tmp_path / 'list.txt').write_text(
        ''.join(f'00000{i}.mp4 {i}\n' for i in numbers))
    return DATASETS.build(dict(
        type='GuardedVideoDataset', ann_file=str(tmp_path / 'list.txt'),
        data_prefix=dict(video=str(motion_dir / 'train')), pipeline=PIPELINE,
        test_mode=True))


def test_samples_equal_files(shards, motion_dir):
    dataset, files = build(shards), expected(motion_dir, shards, range(6))
    assert len(dataset) == 6
    for i in range(6):
        a, b = dataset[i], files[i]
        assert torch.equal(a['inputs'], b['inputs'])
        assert a['data_samples'].gt_label == b['data_samples'].gt_label
        assert a['data_samples'].filename == (
            f'{shards}/x-{i // 2:02}.tar/part/clip{i}.mp4')


def test_headers_are_read_once_unless_a_shard_changes(
        shards, videos, monkeypatch):
    build(shards)
    with monkeypatch.context() as patch:
        patch.setattr(tarfile, 'open', pytest.fail)
        assert len(build(shards)) == 6
    write_tar(shards / 'x-00.tar', [('a.mp4', videos[0]), ('a.cls', b'5')])
    dataset = build(shards)
    assert len(dataset) == 5 and dataset.get_data_info(0)['label'] == 5


def test_reads_remote_shards_by_span(shards, motion_dir, monkeypatch):
    fsspec = pytest.importorskip('fsspec', reason='needs mmvidattn[remote]')
    store = fsspec.filesystem('memory')
    for path in shards.glob('*.tar'):
        store.pipe(f'/b/{path.name}', path.read_bytes())
    monkeypatch.setattr(type(store), 'get_file', pytest.fail)
    dataset = build('memory://b')
    files = expected(motion_dir, shards, range(6))
    assert all(torch.equal(dataset[i]['inputs'], files[i]['inputs'])
               for i in (0, 3, 5))
    store.rm('/b', recursive=True)


def test_webdataset_writes_this_format(tmp_path, videos):
    webdataset = pytest.importorskip('webdataset')
    with webdataset.ShardWriter(str(tmp_path / 'w-%03d.tar'), maxcount=2,
                                verbose=0) as writer:
        for i in range(3):
            writer.write({'__key__': f'clip{i}', 'mp4': videos[i], 'cls': i,
                          'json': {'city': 'x'}})
    dataset = build(tmp_path, 'w-{000..001}.tar', num_classes=3)
    assert [dataset.get_data_info(i)['label'] for i in range(3)] == [0, 1, 2]
    assert dataset[2]['inputs'].shape == (1, 3, 4, 16, 16)


def test_labels_in_json(tmp_path, videos):
    write_tar(tmp_path / 'x.tar', [
        ('a.mp4', videos[0]), ('a.json', json.dumps(dict(label=2)).encode())])
    assert build(tmp_path, 'x.tar').get_data_info(0)['label'] == 2
    write_tar(tmp_path / 'y.tar', [
        ('a.mp4', videos[0]), ('a.json', b'{"label": [0, 2]}')])
    dataset = build(tmp_path, 'y.tar', multi_class=True, num_classes=3)
    assert dataset.get_data_info(0)['label'].tolist() == [1, 0, 1]


@pytest.mark.parametrize('files, message', [
    ([('a.mp4', b'1')], 'x.tar: a lacks a label'),
    ([('a.cls', b'1')], 'x.tar: a lacks a video'),
    ([('a.txt', b'1')], 'x.tar has no videos'),
    ([('a.mp4', b'1'), ('a.webm', b'1'), ('a.cls', b'1')], 'one video, got'),
    ([('a.mp4', b'1'), ('a.cls', b'cat')], "a.cls must be a number, got b'c"),
    ([('a.mp4', b'1'), ('a.json', b'{')], 'a.json must be JSON'),
    ([('a.mp4', b'1'), ('a.json', b'[1]')], 'a lacks a label'),
    ([('a.mp4', b'1'), ('a.cls', b'9')], 'a number from 0 to 4, got 9'),
    ([('a.mp4', b'1'), ('a.cls', b'true')], 'from 0 to 4, got True')])
def test_invalid_samples_name_the_shard(tmp_path, files, message):
    write_tar(tmp_path / 'x.tar', files)
    with pytest.raises(ValueError, match=message):
        build(tmp_path, 'x.tar', num_classes=5)


@pytest.mark.parametrize('size', [0, 100, 600, 5000, -10240, -600])
def test_a_truncated_shard_is_an_error(shards, size):
    path = shards / 'x-01.tar'
    data = path.read_bytes()
    path.write_bytes(data[:size])
    if size == -600:
        # Only padding is lost.
        assert len(build(shards)) == 6
        return
    with pytest.raises(ValueError, match='x-01.tar is not a complete tar'):
        build(shards)


def test_unreadable_videos_are_skipped(shards, videos):
    write_tar(shards / 'x-01.tar', [
        ('a.mp4', b'no video'), ('a.cls', b'0'), ('../../b.mp4', videos[0]),
        ('../../b.cls', b'1')])
    dataset = build(shards, test_mode=False)
    assert dataset.prepare_data(2) is None
    sample = dataset.prepare_data(3)['data_samples']
    assert sample.skipped_videos == [f'{shards}/x-01.tar/a.mp4']
    assert len(build(shards, on_error='skip')) == 5


@pytest.mark.parametrize('pattern', [
    'a.tar', 'x-{000..012}.tar', '{8..11}', '{a,b}/{1..2}.tar', '{3..1}',
    's3://b/{00..01}/{x,y}-{0..1}.tar', '{08..11}', '{0..2}{5,6}'])
def test_expands_braces_like_a_shell(pattern):
    braceexpand = pytest.importorskip('braceexpand')
    assert expand_braces(pattern) == list(braceexpand.braceexpand(pattern))
