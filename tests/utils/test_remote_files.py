# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
import base64
import random
import sys
import threading
import time
import types
from pathlib import Path

import pytest
import torch
from live_fixtures import QuietHandler, close, serve
from mmengine.runner import CheckpointLoader
from safetensors.torch import save_file

from mmvidattn.utils import remote_files
from mmvidattn.utils.checkpoint import download, read_checkpoint

fsspec = pytest.importorskip('fsspec', reason='needs mmvidattn[remote]')
URL = 'memory://b/a.bin'
COMMIT = '0123456789abcdef0123456789abcdef01234567'
NAME = f'hf://owner/model-a.b@{COMMIT}'


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    """Folder of the copies."""
    monkeypatch.setenv('XDG_CACHE_HOME', str(tmp_path / 'cache'))
    return tmp_path / 'cache/mmvidattn/files'


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
    assert remote_files.is_url(text) == expected
    # A folder or its URL is joined with a name, but not with a URL.
    assert remote_files.join_url('s3://b/', text) == (
        text if expected else f's3://b/{text}')
    if expected:
        assert remote_files.join_url('data', text) == text
    assert remote_files.join_url(Path('data'), 'a') == 'data/a'


@pytest.mark.parametrize('url, shown', [
    ('rtsp://h:554/live', 'rtsp://h:554/live'),
    *((f'rtsp://user:{password}@h:554/live', 'rtsp://h:554/live')
      for password in ('secret', 'se/cret', 'se#cret', 'se?cret', 'se[cret',
                       'se@cret')),
    ('rtsp://h/user=admin&password=secret&channel=1', 'rtsp://h/user=***'),
    ('rtsp://h/x_password=secret_stream=0.sdp', 'rtsp://h/x_password=***'),
    ('https://x/a.mp4?sig=secret#secret', 'https://x/a.mp4'),
    ('https://x/a.mp4#t=secret', 'https://x/a.mp4'),
    ('hf://owner/model@1/a.mp4', 'hf://owner/model@1/a.mp4'),
    ('http://[::1/secret', 'http://[::1/secret'), ('a@b.mp4', 'a@b.mp4')])
def test_secrets_are_hidden(url, shown):
    assert remote_files.without_secrets(url) == shown


def test_copies_a_file_once_and_the_latest_on_request(store, cache):
    assert remote_files.local_path('x', latest=True) == Path('x')
    assert not cache.exists()
    path = remote_files.local_path(URL)
    assert path.read_bytes() == b'0123456789' and path.name == 'a.bin'
    store.pipe('/b/a.bin', b'another')
    assert remote_files.local_path(URL) == path
    assert path.read_bytes() == b'0123456789'
    assert remote_files.local_path(URL, latest=True).read_bytes() == b'another'


def test_names_a_missing_file_and_a_missing_package(store, monkeypatch):
    with pytest.raises(FileNotFoundError, match='memory://b/none does not'):
        remote_files.local_path('memory://b/none')
    monkeypatch.setitem(sys.modules, 'fsspec.core', None)
    with pytest.raises(ImportError, match=r's3://b/a.*mmvidattn\[remote\]'):
        remote_files.local_path('s3://b/a.mp4')


@pytest.mark.parametrize('name', [
    '..', '../../../etc/passwd', '.lock', 'x' * 500, 'a\\..\\b', '\0\n',
    'a.mp4?x=/../y', 'é.mp4'])
def test_names_stay_inside_the_cache(cache, monkeypatch, name):
    # Clients draw random numbers.
    monkeypatch.setattr(
        type(fsspec.filesystem('memory')), 'get_file', lambda self, at, part: (
            random.random(), Path(part).write_bytes(b'')))
    before = random.getstate()
    path = remote_files.local_path(f'memory://b/{name}')
    assert random.getstate() == before
    assert path.resolve().parents[1] == cache.resolve()
    assert path.name[0] != '.' and len(path.name.encode()) <= 255
    assert not {'\\', '\0', '\n'} & set(path.name)


@pytest.fixture
def web():
    """Address of a server, and the paths of its requests."""
    requests = []

    class Handler(QuietHandler):

        def do_GET(self):
            requests.append(self.path)
            status = int(self.path[1:4]) if self.path[1:4].isdigit() else 200
            if 'login' in self.path:
                expected = 'Basic ' + base64.b64encode(b'me:a@b').decode()
                given = self.headers.get('Authorization')
                status = 200 if given == expected else 401
            self.send_response(status)
            if 'live' not in self.path:
                self.send_header('Content-Length', '6')
            self.send_header('Content-Type', 'application/x-mpegURL'
                             if 'list' in self.path else 'video/mp4')
            self.end_headers()
            self.wfile.write(b'abc')
            time.sleep(.2)
            if 'short' not in self.path:
                self.wfile.write(b'def')

    server = serve(Handler)
    yield f'127.0.0.1:{server.server_port}', requests
    close(server)


def test_http(web, cache, monkeypatch):
    pytest.importorskip('aiohttp', reason='needs mmvidattn[remote]')
    monkeypatch.setenv('NO_PROXY', '127.0.0.1')
    address, requests = web
    found = []
    url = f'http://{address}/a.mp4?token=1'
    threads = [threading.Thread(target=lambda: found.append(
        remote_files.local_path(url).read_bytes())) for _ in range(4)]
    for thread in threads:
        thread.start()
        time.sleep(.05)
    for thread in threads:
        thread.join()
    # No copy is visible before it is complete.
    assert found == [b'abcdef'] * 4
    assert not [*cache.rglob('*.part')]
    for host, path, error, text in (
            (address, '404', FileNotFoundError, 'does not exist'),
            (address, '403', remote_files.RemoteError, '403'),
            (address, 'short', remote_files.RemoteError, 'cannot copy'),
            ('127.0.0.1:1', 'a', remote_files.RemoteError, 'cannot copy')):
        with pytest.raises(error, match=f'http://{host}/{path}') as caught:
            remote_files.local_path(
                f'http://user:secret@{host}/{path}?token=secret')
        assert text in str(caught.value)
        assert 'secret' not in str(caught.value)
        # A traceback would show the cause.
        assert caught.value.__suppress_context__
        assert caught.value.__cause__ is None


def test_files_and_streams_of_a_web_server(web, tmp_path, monkeypatch):
    address = web[0]
    # No part of a checkpoint stays.
    monkeypatch.setenv('TORCH_HOME', str(tmp_path))
    for _ in range(2):
        with pytest.raises(OSError, match='ended after 3 of 6 bytes'):
            download(f'http://{address}/short.pth')
    assert not [path for path in tmp_path.rglob('*') if path.is_file()]
    for place in f'{address}/a?token=1', f'me:a%40b@{address}/login':
        path = remote_files.download_file(f'http://{place}', tmp_path)
        assert path.name in ('a', 'login') and path.read_bytes() == b'abcdef'
    for name in 'live', 'list', 'login':
        url = f'http://{address}/{name}'
        assert remote_files.download_file(url, tmp_path) is None
    for name, error in ('short', 'ended after 3 of 6 bytes'), ('404', '404'):
        with pytest.raises(OSError, match=error):
            remote_files.download_file(f'http://{address}/{name}', tmp_path)


@pytest.fixture
def hub(tmp_path, monkeypatch):
    """Replace the Hub by one file, and return the list of requests to it."""
    path, requests = tmp_path / 'model.safetensors', []
    save_file({'w': torch.arange(3.)}, path)

    def hf_hub_download(repo_id, filename, *, revision):
        requests.append((repo_id, filename, revision))
        if repo_id == 'owner/none':
            raise FileNotFoundError('404, no such\nmodel')
        return str(path)

    monkeypatch.setitem(
        sys.modules, 'huggingface_hub',
        types.SimpleNamespace(hf_hub_download=hf_hub_download))
    return requests


def test_requests_revision_and_file_of_the_hub(hub):
    for load in read_checkpoint, CheckpointLoader.load_checkpoint:
        assert torch.equal(load(NAME)['w'], torch.arange(3.))
    remote_files.hub_file(f'{NAME}/folder/other.safetensors')
    assert hub == [
        *[('owner/model-a.b', 'model.safetensors', COMMIT)] * 2,
        ('owner/model-a.b', 'folder/other.safetensors', COMMIT)]
    with pytest.raises(ValueError, match='has the SHA-256 .* not used'):
        download(NAME, sha256='0000')


def test_refused_names_of_the_hub(hub, monkeypatch):
    for name in ('hf://owner/model', 'hf://owner/model@main',
                 f'hf://model@{COMMIT}', f'hf://owner/model@{COMMIT[1:]}',
                 f'{NAME}/pytorch_model.bin'):
        with pytest.raises(ValueError, match=f'{name}.*40 hexadecimal digits'):
            remote_files.hub_file(name)
    assert not hub
    name = f'hf://owner/none@{COMMIT}'
    with pytest.raises(OSError, match=f'{name} cannot .* 404, no such model'):
        remote_files.hub_file(name)
    monkeypatch.setitem(sys.modules, 'huggingface_hub', None)
    with pytest.raises(ImportError, match='pip install huggingface_hub'):
        remote_files.hub_file(NAME)
