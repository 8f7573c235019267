# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""What conftest.py does for all tests: folders, time limit, comparisons."""
import os
from pathlib import Path
from types import SimpleNamespace

import pytest
from user_folders import FolderWatch, make_user_folders


def test_files_in_the_home_folder_and_the_cache_are_listed(tmp_path):
    with make_user_folders(tmp_path) as folders:
        assert folders.list_left_files() == []
        Path('in_the_working_directory').touch()
        Path.home().joinpath('.settings').touch()
        (folders.cache / 'mmvidattn').mkdir()
        (folders.cache / 'fontconfig').mkdir()
        assert folders.list_left_files() == [
            'in the home folder: .settings', 'in the cache: mmvidattn']


def test_watch_finds_new_files_once(tmp_path):
    (tmp_path / 'tools/data').mkdir(parents=True)
    (tmp_path / '.venv').mkdir()
    watch = FolderWatch(tmp_path)
    # Enter a folder's time of change explicitly: a clock may be coarse.
    for i, name in enumerate(
            ('a', 'tools/b', 'tools/data/c', '.venv/d', '__pycache__/e')):
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.touch()
        os.utime(path.parent, ns=(i, i))
    assert watch.find_new() == [
        str(tmp_path / name) for name in ('a', 'tools/b', 'tools/data/c')]
    (tmp_path / 'a').write_text('changed')
    (tmp_path / 'tools/b').unlink()
    assert watch.find_new() == []


@pytest.mark.parametrize('reason, compares, status', [
    ("could not import 'timm': No module named 'timm'", '1', 1),
    ("could not import 'timm'", '', 0), ('needs CUDA', '1', 0)])
def test_skipped_comparison_fails(request, monkeypatch, capsys, reason,
                                  compares, status):
    """run_tests.sh --all fails when a comparison is skipped."""
    conftest = request.config.pluginmanager.get_plugin(
        str(Path(__file__).with_name('conftest.py')))
    monkeypatch.delenv('PYTEST_XDIST_WORKER', raising=False)
    monkeypatch.setenv('MMVIDATTN_COMPARE', compares)
    skipped = SimpleNamespace(longrepr=('a.py', 1, f'Skipped: {reason}'))
    reporter = SimpleNamespace(stats=dict(skipped=[skipped]))
    session = SimpleNamespace(exitstatus=0, config=SimpleNamespace(
        pluginmanager=SimpleNamespace(get_plugin=lambda name: reporter)))
    conftest.pytest_sessionfinish(session)
    assert session.exitstatus == status
    assert ('timm' in capsys.readouterr().out) == status
