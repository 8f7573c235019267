# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
import os
import subprocess
import sys
from pathlib import Path

from user_folders import FolderWatch, make_user_folders


def test_this_test_has_empty_folders(tmp_path_factory):
    cache = Path(os.environ['XDG_CACHE_HOME'])
    for folder in Path.cwd(), Path.home(), cache:
        assert folder.is_relative_to(tmp_path_factory.getbasetemp())
        assert not [*folder.iterdir()]
    code = 'import os; print(os.getcwd(), os.path.expanduser("~"))'
    done = subprocess.run([sys.executable, '-c', code], text=True,
                          capture_output=True, check=True)
    assert done.stdout.split() == [str(Path.cwd()), str(Path.home())]


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
    (tmp_path / 'new/below').mkdir(parents=True)
    assert watch.find_new() == [str(tmp_path / 'new')]
