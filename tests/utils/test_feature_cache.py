# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
import hashlib
import multiprocessing
import os

import numpy as np
import pytest
import torch

from mmvidattn.utils.feature_cache import (
    FeatureFolder,
    FeatureWriter,
    describe_folders,
    read_features,
    to_json,
    weights_digest,
)

CONTEXT = multiprocessing.get_context('fork')


@pytest.fixture
def video(tmp_path):
    path = tmp_path / 'a.mp4'
    path.write_bytes(bytes(range(256)))
    return str(path)


def sha256(text):
    return hashlib.sha256(text.encode()).hexdigest()


def test_names_are_hashes_of_settings_and_content(tmp_path, video):
    folder = FeatureFolder(tmp_path, dict(b=(1, 2.5), a=None))
    assert folder.path.name == sha256(
        '{"a": null, "b": [1, 2.5], "format": 1}')[:16]
    content = hashlib.sha256(bytes(range(256))).hexdigest()
    name = sha256(f'["{content}", {{"variant": 1}}]')[:32]
    assert folder.file_of(video, variant=1) == (
        folder.path / name[:2] / f'{name}.safetensors')
    FeatureFolder(tmp_path, dict(a=None, b=[1, 2.]))
    assert len(describe_folders(tmp_path)) == 2


def test_video_is_hashed_once(tmp_path, video, monkeypatch):
    hashed = []
    monkeypatch.setattr('mmvidattn.utils.feature_cache.hash_file',
                        lambda path: hashed.append(path) or 64 * 'a')
    for _ in range(2):
        folder = FeatureFolder(tmp_path, {})
        folder.file_of(video)
        folder.file_of(video)
    assert hashed == [video]
    # A damaged cache file of a hash is ignored.
    note, = (tmp_path / 'videos').iterdir()
    note.write_text('abc')
    FeatureFolder(tmp_path, {}).file_of(video)
    # The file has a new modification time, in a process that knows it.
    os.utime(video, (1e9, 1e9))
    folder.file_of(video)
    assert len(hashed) == 3
    with pytest.raises(OSError):
        folder.file_of(f'{video}.none')


def _work(path, value, failures):
    writer = FeatureWriter(path.parent)
    features = torch.full((100, 1000), float(value))
    for _ in range(20):
        writer.write(path, features)
        result = read_features(path)
        # Any complete file is right.
        if result is None or len(result.unique()) != 1:
            failures.put(value)


def test_processes_write_and_read_concurrently(tmp_path):
    path, failures = tmp_path / 'x/f.safetensors', CONTEXT.Queue()
    processes = [CONTEXT.Process(target=_work, args=(path, i, failures))
                 for i in range(3)]
    for process in processes:
        process.start()
    for process in processes:
        process.join(60)
        assert process.exitcode == 0
    assert failures.empty()
    assert [*path.parent.iterdir()] == [path]


@pytest.mark.parametrize('dtype, atol', [('float32', 0), ('float16', 1e-3)])
def test_reads_rounded_features(tmp_path, dtype, atol):
    torch.manual_seed(0)
    writer = FeatureWriter(tmp_path, dtype)
    features = torch.randn(2, 3, 5)
    path = tmp_path / 'f.safetensors'
    writer.write(path, features)
    result = read_features(path)
    assert torch.equal(result, writer.round(features))
    torch.testing.assert_close(result, features, atol=atol, rtol=0)
    assert writer.size == path.stat().st_size
    assert read_features(tmp_path / 'none') is None


def test_rejects_overflow_of_float16():
    writer = FeatureWriter('none', 'float16')
    with pytest.raises(ValueError, match="use dtype='float32'"):
        writer.round(torch.tensor([1e5]))
    writer.round(torch.tensor([float('inf')]))


def test_digest_depends_on_names_shapes_and_values():
    one = dict(a=torch.arange(6.).view(2, 3))
    changed = one['a'].clone()
    changed[1, 2] += 1e-6
    changed_states = [dict(b=one['a']), dict(a=one['a'].view(3, 2)),
              dict(a=one['a'].double()), dict(a=changed)]
    digests = [weights_digest(state) for state in (one, *changed_states)]
    assert len({*digests}) == 5
    assert weights_digest(dict(a=one['a'].clone())) == digests[0]


def test_converts_plain_options_only():
    assert to_json(dict(a=(1, np.float32(2)), b=np.arange(2), c=dict),
                   'x') == dict(a=[1, 2.], b=[0, 1], c='builtins.dict')
    with pytest.raises(ValueError, match=r'pipeline\.0\.f is a function'):
        to_json([dict(f=lambda: 0)], 'pipeline')
