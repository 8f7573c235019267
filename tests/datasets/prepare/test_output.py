# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""A run keeps the files of other runs, whenever and however it ends."""
import resource

import numpy as np
import pytest

from mmvidattn.commands import main

SPLITS = dict(train='abcd', val='ijkl')
STEPS = 400


@pytest.fixture
def run(tmp_path):
    """Function that writes targets of 8 videos, from a csv for each list."""
    (tmp_path / 'features').mkdir()
    for split, videos in SPLITS.items():
        text = 'video,start,end,label,subset\n'
        for i, video in enumerate(videos):
            np.save(tmp_path / f'features/{video}.npy', np.zeros((STEPS, 1)))
            text += f'{video},{i},{i + 3},run,{split}\n'
        (tmp_path / f'{split}.csv').write_text(text)
    (tmp_path / 'classes.txt').write_text('background\nrun\n')

    def run(split, *args, out='out'):
        main([
            'targets', 'csv', f'{tmp_path}/{split}.csv', f'{tmp_path}/{out}',
            '--features', f'{tmp_path}/features', '--classes',
            f'{tmp_path}/classes.txt', *args])

    return run


def files(folder):
    return {str(path.relative_to(folder)): path.read_bytes()
            for path in sorted(folder.rglob('*')) if path.is_file()}


def test_full_disk_damages_no_file(tmp_path, run, capsys):
    """A limit on the file size fails like a full disk."""
    run('val')
    for video in SPLITS['train']:
        (tmp_path / f'out/target_perframe/{video}.npy').unlink()
    before = files(tmp_path / 'out')
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (900, hard))
    try:
        with pytest.raises(SystemExit, match='too large'):
            run('train')
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert files(tmp_path / 'out') == before
    run('train')
    run('train', out='fresh')
    run('val', out='fresh')
    assert files(tmp_path / 'out') == files(tmp_path / 'fresh')


def test_keeps_files_of_other_programs(tmp_path, run, capsys):
    path = tmp_path / 'out/target_perframe/a.npy'
    path.parent.mkdir(parents=True)
    np.save(path, np.zeros((STEPS, 2), np.float32))
    with pytest.raises(SystemExit, match='a.npy already exists'):
        run('train')
    assert not (tmp_path / 'out/train.txt').exists()
    assert np.load(path).dtype == np.float32
    run('train', '--force')
    assert np.load(path).dtype == np.uint8
    capsys.readouterr()
    run('train')
    # Targets, the classes, a list and its counts.
    assert ' 0 files written, 11 already existed' in capsys.readouterr().out
