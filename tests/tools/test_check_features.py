# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
import json

import numpy as np
import pytest
from feature_set import write_set


@pytest.fixture
def check(run_main, capsys):

    def run(root, *args):
        with pytest.raises(SystemExit) as exit:
            run_main('check-features', root, '--features',
                     'rgb', 'flow', *args)
        return exit.value.code, capsys.readouterr().out

    return run


def test_good_set(check, tmp_path):
    write_set(tmp_path)
    code, out = check(tmp_path, '--list', 'videos.txt', '--dims', 3, 2,
                      '--classes', 'classes.txt')
    assert code == 0 and out.endswith('no faults\n')
    rows = [line.split() for line in out.splitlines()[1:-1]]
    assert rows == [
        ['rgb', '4', '3', 'float32', '10', 'to', '90', '225', '0'],
        ['flow', '4', '2', 'float32', '10', 'to', '90', '225', '0'],
        ['target_perframe', '4', '3', 'uint8', '10', 'to', '90', '225', '0']]


@pytest.mark.parametrize('write, error', [
    (lambda r: (r / 'flow/b.npy').unlink(), 'there is no file '),
    (lambda r: np.save(r / 'flow/b.npy', np.zeros((53, 2))),
     'b: lengths differ: rgb 55, flow 53, target_perframe 55'),
    (lambda r: np.save(r / 'flow/b.npy', np.zeros((55, 4))),
     'flow/b.npy: width must be 2, got 4'),
    (lambda r: np.save(r / 'flow/b.npy', np.array([{}]), allow_pickle=True),
     'flow/b.npy must be a .npy file of numbers that needs no unpickling'),
    (lambda r: np.save(r / 'flow/b.npy', np.zeros(55)), 'must be numbers of'),
    (lambda r: np.save(r / 'flow/b.npy', np.full((55, 2), np.inf)),
     'flow/b.npy: nan or infinity, first in step 0'),
    (lambda r: np.save(r / 'target_perframe/b.npy', np.zeros((55, 3))),
     'b.npy: targets must be 0 or 1, with a class in each step'),
    (lambda r: np.save(r / 'target_perframe/b.npy', np.full((55, 3), 2)),
     'b.npy: targets must be 0 or 1'),
], ids=['missing', 'length', 'width', 'pickled', 'shape', 'infinity',
        'no class', 'not a target'])
def test_reports_each_fault(check, tmp_path, write, error):
    write(write_set(tmp_path))
    code, out = check(tmp_path)
    assert code == 1 and error in out
    assert out.endswith('1 faults\n')


def test_counts_class_names_by_lines(check, tmp_path):
    text = 'background\none\ntwo\n\n'
    write_set(tmp_path)
    (tmp_path / 'classes.txt').write_text(text)
    assert check(tmp_path, '--classes', 'classes.txt')[0] == 0
    (tmp_path / 'classes.txt').write_text(f'{text}\nmore')
    assert check(tmp_path, '--classes', 'classes.txt')[0] == 1


def test_rates(check, tmp_path):
    lengths = write_set(tmp_path) and dict(a=17.5, b=13.9, c=45, short=2.5)
    path = tmp_path / 'seconds.json'
    path.write_text(json.dumps(lengths))
    code, out = check(tmp_path, '--rate', 4, '--durations', path)
    assert code == 1 and out.endswith('1 faults\n')
    assert 'c: 90 steps in 45 s are 2 Hz, expected 4' in out


@pytest.mark.parametrize('args, error', [
    (['--list', 'none.txt'], '--list: file .*none.txt'),
    (['--dims', '3'], '--dims .*2 --features, got 1'),
    (['--classes', 'none.txt'], '--classes: file .*none.txt'),
    (['--rate', '4'], '--rate and --durations'),
])
def test_bad_options(check, tmp_path, args, error, run_main):
    write_set(tmp_path)
    with pytest.raises(SystemExit, match=error):
        run_main('check-features', tmp_path, '--features',
                 'rgb', 'flow', *args)
