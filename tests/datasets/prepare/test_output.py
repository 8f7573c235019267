# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""A run keeps the results of other runs, whenever and however it ends."""
import json
import os
import random
import resource
import signal
import subprocess
import time

import numpy as np
import pytest

from mmvidattn.commands import main
from mmvidattn.datasets.prepare import describe_root
from mmvidattn.datasets.prepare.output import Output

SPLITS = dict(train='abcdefgh', val='ijklmn')
STEPS = 400


@pytest.fixture
def root(tmp_path):
    """Folder with features of 14 videos, and two csv for one list."""
    (tmp_path / 'features').mkdir()
    for video in ''.join(SPLITS.values()):
        np.save(tmp_path / f'features/{video}.npy', np.zeros((STEPS, 1)))
    for split, videos in SPLITS.items():
        (tmp_path / f'{split}.csv').write_text(
            'video,start,end,label,subset\n' + ''.join(
                f'{video},{i},{i + 3},run,both\n'
                for i, video in enumerate(videos)))
    (tmp_path / 'classes.txt').write_text('background\nrun\n')
    return tmp_path


def run(root, split, *args, out='out'):
    main(['targets', 'csv', str(root / f'{split}.csv'), str(root / out),
          '--features', str(root / 'features'), '--classes',
          str(root / 'classes.txt'), *args])


def in_child(function, *args, limit=None, disk_waits=0.):
    """Run ``prepare`` in a child process, which may be killed."""
    child = os.fork()
    if child:
        return child
    try:
        with open(os.devnull, 'w') as null:
            os.dup2(null.fileno(), 1)
            os.dup2(null.fileno(), 2)
        if limit:
            resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
        os.fsync = lambda _: time.sleep(disk_waits)
        function(*args)
        os._exit(0)
    except SystemExit:
        os._exit(1)
    finally:
        os._exit(2)


def files(folder, names=None):
    """Return the content of all files, or of some, except provenance."""
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob('*'))
        if path.is_file() and path.name != 'provenance.json'
        and (names is None or path.stem in names)}


def test_order_of_runs_does_not_matter(root):
    for out, order in (('one', ('train', 'val')), ('two', ('val', 'train'))):
        for split in order:
            run(root, split, out=out)
    assert files(root / 'one') == files(root / 'two')
    assert (root / 'one/both.txt').read_text().split() == [*'abcdefghijklmn']
    counts = (root / 'one/both_class_counts.txt').read_text()
    assert counts == '0\n14\n'
    for i, video in enumerate(SPLITS['train']):
        targets = np.load(root / f'one/target_perframe/{video}.npy')
        # Three seconds from second i, at 4 steps per second.
        assert np.flatnonzero(targets[:, 1]).tolist() == [
            *range(4 * i, 4 * i + 12)]


def test_survives_kills_at_random_moments(root):
    run(root, 'val', out='complete')
    run(root, 'train', out='complete')
    run(root, 'val')
    before = files(root / 'out')
    of_val = files(root / 'out', SPLITS['val'])
    complete = files(root / 'complete')
    # Simulate a slow disk, to allow many different moments.
    slow = dict(disk_waits=0.001)
    began = time.perf_counter()
    os.waitpid(in_child(run, root, 'train', '--force', **slow), 0)
    lasted = time.perf_counter() - began
    rng = random.Random(0)
    killed = tries = 0
    # Some runs end before they are killed.
    while killed < 8:
        tries += 1
        assert tries < 200
        for video in SPLITS['train']:
            (root / f'out/target_perframe/{video}.npy').unlink(True)
        child = in_child(run, root, 'train', **slow)
        time.sleep(rng.uniform(0, 0.7 * lasted))
        os.kill(child, signal.SIGKILL)
        _, status = os.waitpid(child, 0)
        killed += os.WIFSIGNALED(status)
        assert files(root / 'out', SPLITS['val']) == of_val
        # No file is incomplete.
        for name, content in files(root / 'out').items():
            if not name.endswith(('.part', '.lock')):
                assert content in (complete[name], before[name])
    run(root, 'train')
    assert files(root / 'out') == complete


def test_full_disk(root):
    """A limit on the file size fails like a full disk."""
    run(root, 'val')
    for video in SPLITS['train']:
        # Remove the files of the training videos, so that the next run must
        # write them. A file that is left would contain only background.
        (root / f'out/target_perframe/{video}.npy').unlink()
    before = files(root / 'out')
    _, status = os.waitpid(in_child(run, root, 'train', limit=900), 0)
    assert os.WEXITSTATUS(status) == 1
    result = files(root / 'out')
    for name, content in before.items():
        assert result[name] == content
    assert not [name for name in result if name.endswith('.part')]
    json.loads((root / 'out/provenance.json').read_text())


def test_keeps_files_of_other_programs(root, capsys):
    path = root / 'out/target_perframe/a.npy'
    path.parent.mkdir(parents=True)
    released = np.zeros((STEPS, 2), np.float32)
    np.save(path, released)
    with pytest.raises(SystemExit, match='a.npy already exists'):
        run(root, 'train')
    assert not (root / 'out/provenance.json').is_file()
    assert not (root / 'out/both.txt').exists()
    assert np.load(path).dtype == np.float32
    run(root, 'train', '--force')
    assert np.load(path).dtype == np.uint8
    # Repeating the run changes nothing.
    capsys.readouterr()
    run(root, 'train')
    # Targets, the classes, a list and its counts.
    assert ' 0 files written, 17 already existed' in capsys.readouterr().out
    with pytest.raises(SystemExit, match='rate must be 4 .* got 8'):
        run(root, 'val', '--rate', '8')


def test_provenance(root):
    run(root, 'train')
    result = json.loads((root / 'out/provenance.json').read_text())
    (key, record), = result['runs'].items()
    assert key == 'targets csv train.csv' and not result['unfinished']
    assert record['counts']['videos'] == record['counts']['segments'] == 8
    digest = subprocess.run(['sha256sum', root / 'train.csv'],
                            capture_output=True, text=True).stdout.split()[0]
    assert record['sources'][str(root / 'train.csv')] == digest
    origin = describe_root(root / 'out')
    assert origin.startswith(f'features and targets: {root / "out"} '
                             '(targets csv train.csv, 20')
    digest = record['counts']['targets_sha256'][:12]
    assert f'targets sha256 {digest}' in origin
    assert 'origin unknown' in describe_root(root)
    (root / 'out/provenance.json').write_text('{}')
    assert 'not written by mmvidattn' in describe_root(root / 'out')
    with pytest.raises(SystemExit, match='not written by mmvidattn'):
        run(root, 'val')


def test_rejected_run_leaves_no_trace(tmp_path):
    (tmp_path / 'classes.txt').write_text('a\n')
    with pytest.raises(ValueError, match='already exists'), Output(
            tmp_path, 'test', '', {}, []) as output:
        output.begin()
        output.write(tmp_path / 'classes.txt', b'b\n')
    assert [path.name for path in tmp_path.iterdir()] == ['classes.txt']


def test_one_run_at_a_time(tmp_path):
    with Output(tmp_path, 'test', '', {}, []):
        with pytest.raises(ValueError, match='in use by another run'):
            Output(tmp_path, 'test', 'other', {}, [])
    with Output(tmp_path, 'test', 'other', {}, []):
        pass


def test_hash_of_a_folder_covers_both_ends_of_its_files(tmp_path):
    folder = tmp_path / 'features'
    folder.mkdir()
    seen = set()
    for name, change in (('a', None), ('a', 0), ('a', -1), ('b', None)):
        content = bytearray(200_000)
        if change is not None:
            content[change] = 1
        for path in folder.iterdir():
            path.unlink()
        (folder / name).write_bytes(content)
        with Output(tmp_path / 'out', 'test', '', {}, [folder]) as output:
            seen.add(output.record['sources'][str(folder)])
    assert len(seen) == 4
