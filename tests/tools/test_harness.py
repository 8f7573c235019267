# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
import platform

import pytest

from mmvidattn.ops import processor
from tools.harness import Results, finish, machine, replace_rows, table


def test_rows_are_replaced_and_sorted():
    page = 'Before.\n\n| a | b |\n|---|---|\n| 2 | old |\n| 1 | kept |\n'
    for rest in '', '\nAfter.\n':
        new = table('ab', [['2', 'new'], ['0', 'first']])[2:]
        assert replace_rows(page + rest, 'ab', new, key=lambda x: x[2]) == (
            'Before.\n\n| a | b |\n|---|---|\n| 0 | first |\n| 1 | kept |\n'
            '| 2 | new |\n' + rest)
    with pytest.raises(ValueError, match='a, c'):
        replace_rows(page, 'ac', [], key=str)


def test_results_resume_with_the_same_options(tmp_path):
    options = dict(steps=2, sizes=(1, 2))
    done = Results(tmp_path / 'new', options)
    assert done.get('a') is None
    assert done.once('a', lambda: dict(score=1)) == dict(score=1)
    again = Results(tmp_path / 'new', options)
    assert again.once('a', lambda: pytest.fail('it is there')) == dict(score=1)
    with pytest.raises(ValueError, match=r'\(steps was 2, now 3\)'):
        Results(tmp_path / 'new', dict(options, steps=3))
    (tmp_path / 'mine').mkdir()
    (tmp_path / 'mine/notes').touch()
    with pytest.raises(ValueError, match='mine is not empty'):
        Results(tmp_path / 'mine', options)


@pytest.mark.parametrize('failures, code', [([], 0), (['a clip'], 1)])
def test_failures_set_the_exit_code(capsys, failures, code):
    with pytest.raises(SystemExit) as end:
        finish(failures)
    assert end.value.code == code
    assert ('wrong: a clip' in capsys.readouterr().out) == bool(code)


@pytest.mark.parametrize('cpuinfo, python, expected', [
    ('vendor_id\t: A\nmodel name\t: Some CPU @ 2.5GHz: fast\n'
     'model name\t: another\n', 'x86', 'Some CPU @ 2.5GHz: fast'),
    # ARM has no model name.
    ('processor\t: 0\nmodel\t\t: 7\n', 'known to Python',
     'known to Python'),
    (None, 'known to Python', 'known to Python'),
    (None, '', 'aarch64'),
], ids=['Linux', 'without a name', 'without a file', 'kind only'])
def test_machine_line_names_the_processor(tmp_path, monkeypatch, cpuinfo,
                                          python, expected):
    monkeypatch.setattr(processor, 'CPUINFO', tmp_path / 'cpuinfo')
    monkeypatch.setattr(platform, 'processor', lambda: python)
    monkeypatch.setattr(platform, 'machine', lambda: 'aarch64')
    if cpuinfo is not None:
        (tmp_path / 'cpuinfo').write_text(cpuinfo)
    assert f'cores of {expected}, Python' in machine()
