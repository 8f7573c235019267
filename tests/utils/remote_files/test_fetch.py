# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
import random
import sys
from pathlib import Path

import pytest

from mmvidattn.utils import remote_files
from mmvidattn.utils.remote_files import fetch, is_url, local_file, local_path

fsspec = pytest.importorskip('fsspec', reason='needs mmvidattn[remote]')


@pytest.fixture(autouse=True)
def cache_home(tmp_path, monkeypatch):
    monkeypatch.setenv('XDG_CACHE_HOME', str(tmp_path / 'cache'))
    monkeypatch.setattr(fetch, '_held', {})
    return tmp_path / 'cache'


@pytest.fixture
def store():
    memory = fsspec.filesystem('memory')
    memory.pipe('/b/a.bin', b'0123456789')
    yield memory
    memory.rm('/b', recursive=True)


@pytest.mark.parametrize('text, expected', [
    ('s3://b/a.mp4', True), ('gs://b/a', True), ('hf://o/m@1/a', True),
    ('memory://b/a', True), ('https://x/a', True), ('rtsp://x/a', False),
    ('file:///etc/passwd', False), ('/tmp/a.mp4', False), ('a.mp4', False),
    ('C:/a.mp4', False), ('3', False)])
def test_is_url(text, expected):
    assert is_url(text) == expected


def test_copies_a_file_once(store, monkeypatch):
    with local_file('memory://b/a.bin') as path:
        assert path.read_bytes() == b'0123456789'
        assert path.name == 'a.bin'
    store.pipe('/b/a.bin', b'another')
    with local_file('memory://b/a.bin') as path:
        assert path.read_bytes() == b'0123456789'


def test_the_latest_version_is_copied_on_request(store):
    assert local_path('memory://b/a.bin').read_bytes() == b'0123456789'
    store.pipe('/b/a.bin', b'another')
    with local_file('memory://b/a.bin', latest=True) as path:
        assert path.read_bytes() == b'another'
    # This process keeps the version with which it began.
    assert local_path('memory://b/a.bin').read_bytes() == b'0123456789'


def test_local_files_are_returned(tmp_path):
    with local_file(tmp_path / 'x') as path:
        assert path == tmp_path / 'x'
    assert local_path('x') == Path('x')


def test_copies_a_span(store, tmp_path):
    (tmp_path / 'a.bin').write_bytes(b'0123456789')
    for source in 'memory://b/a.bin', str(tmp_path / 'a.bin'):
        with local_file(source, span=(2, 3), name='x.mp4') as path:
            assert path.read_bytes() == b'234' and path.name == 'x.mp4'
        with pytest.raises(ValueError, match='ends at byte 10, expected 11'):
            local_file(source, span=(8, 3))


def test_a_missing_file_is_not_retried(store, monkeypatch):
    monkeypatch.setattr(fetch.time, 'sleep', pytest.fail)
    with pytest.raises(FileNotFoundError):
        local_file('memory://b/missing.bin')
    assert not remote_files.exists('memory://b/missing.bin')
    assert remote_files.exists('memory://b/a.bin')


class Away:
    """File system that fails a number of times."""

    def __init__(self, store, failures):
        self.store, self.failures = store, failures

    def __call__(self, url):
        random.random()
        if self.failures:
            self.failures -= 1
            raise ConnectionResetError('away')
        return self.store, url.replace('memory://', '/')


def test_waits_for_the_server(store, monkeypatch):
    pauses = []
    monkeypatch.setattr(fetch.time, 'sleep', pauses.append)
    monkeypatch.setattr(fetch, '_file_system', Away(store, 7))
    random.seed(3)
    with local_file('memory://b/a.bin') as path:
        assert path.read_bytes() == b'0123456789'
    assert pauses == [.5, 1, 2, 4, 8, 10, 10]
    # Augmentations draw the same numbers as without the outage.
    drawn = random.random()
    random.seed(3)
    assert drawn == random.random()


def test_an_endless_outage_names_the_url_without_secrets(store, monkeypatch):
    now = [0.]
    monkeypatch.setattr(fetch.time, 'monotonic', lambda: now[0])
    monkeypatch.setattr(fetch.time, 'sleep',
                        lambda pause: now.__setitem__(0, now[0] + pause))
    monkeypatch.setattr(fetch, '_file_system', Away(store, 1000))
    with pytest.raises(fetch.RemoteError, match='http://h/a.bin: no answer'
                       ' for 29. s.*ConnectionResetError: away'):
        local_file('http://user:secret@h/a.bin?token=secret')


def test_a_short_download_is_repeated(store, monkeypatch):
    counts = []
    real = type(store).get_file

    def get_file(self, at, part, **kwargs):
        real(self, at, part, **kwargs)
        counts.append(1)
        if len(counts) < 3:
            Path(part).write_bytes(b'012')

    monkeypatch.setattr(type(store), 'get_file', get_file)
    monkeypatch.setattr(fetch.time, 'sleep', lambda _: None)
    with local_file('memory://b/a.bin') as path:
        assert path.read_bytes() == b'0123456789'
    assert len(counts) == 3


def test_a_missing_package_names_the_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, 'fsspec.core', None)
    with pytest.raises(ImportError, match=r's3://b/a.*mmvidattn\[remote\]'):
        local_file('s3://b/a.mp4')


@pytest.mark.parametrize('text', ['0', '-1', 'many', 'nan', 'inf'])
def test_rejects_an_invalid_size(text, store, monkeypatch):
    monkeypatch.setenv('MMVIDATTN_CACHE_GB', text)
    with pytest.raises(ValueError, match=f'MMVIDATTN_CACHE_GB .*{text!r}'):
        local_file('memory://b/a.bin')


@pytest.mark.parametrize('url', [
    'memory://b/..', 'memory://b/../../../etc/passwd', 's3://b/.lock',
    's3://b/' + 'x' * 500, 's3://b/a\\..\\b', 's3://b/', 's3://b/\0\n',
    'https://h/a.mp4?x=/../y', 's3://b/...', 's3://b/é.mp4'])
def test_names_stay_inside_the_cache(url):
    name = fetch.safe_name(url)
    assert Path(name).name == name and not name.startswith('.')
    assert 0 < len(name.encode()) <= 255
    assert not {'/', '\\', '\0', '\n'} & set(name)
