# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
import os

import pytest

from mmvidattn.utils import files
from mmvidattn.utils.files import replacing, write_atomically


@pytest.mark.parametrize('fails', ['fsync', 'replace'])
def test_file_is_complete_or_unchanged(tmp_path, monkeypatch, fails):
    path = tmp_path / 'a'
    # A killed writer has left this file.
    (tmp_path / '.a.part').write_bytes(b'half')
    write_atomically(path, 'Zürich')

    def fail(*_):
        raise OSError(28, 'No space left on device')

    monkeypatch.setattr(os, fails, fail)
    with pytest.raises(OSError, match='No space'):
        write_atomically(path, b'new')
    with pytest.raises(KeyboardInterrupt), replacing(path) as part:
        part.write_bytes(b'half')
        raise KeyboardInterrupt
    assert path.read_bytes() == b'Z\xc3\xbcrich'
    assert [*tmp_path.iterdir()] == [path]


def test_flushes_content_before_renaming(tmp_path, monkeypatch):
    path, calls = tmp_path / 'folder/a', []
    flush, replace = files.flush, os.replace
    monkeypatch.setattr(files, 'flush', lambda flushed: (calls.append(
        'folder' if flushed == path.parent else 'content'), flush(flushed)))
    monkeypatch.setattr(os, 'replace', lambda *args: (
        calls.append('name'), replace(*args)))
    write_atomically(path, b'new')
    assert calls == ['content', 'name', 'folder'][:2 + (os.name == 'posix')]
    calls.clear()
    write_atomically(path, b'newer', shared=True)
    assert calls == ['name'] and path.read_bytes() == b'newer'


def test_concurrent_writers_do_not_conflict(tmp_path):
    path = tmp_path / 'a'
    with replacing(path, shared=True) as part:
        part.write_bytes(b'mine')
        # Another process writes before this one renames its file.
        write_atomically(path, b'other', shared=True)
        assert path.read_bytes() == b'other'
    assert path.read_bytes() == b'mine'
    assert [*tmp_path.iterdir()] == [path]


@pytest.mark.parametrize('exists', [True, False])
def test_writes_through_a_symbolic_link(tmp_path, exists):
    target, link = tmp_path / 'disk/a', tmp_path / 'a'
    if exists:
        write_atomically(target, b'old')
    link.symlink_to('disk/a')
    write_atomically(link, b'new')
    assert link.is_symlink() and target.read_bytes() == b'new'
    assert [*target.parent.iterdir()] == [target]
