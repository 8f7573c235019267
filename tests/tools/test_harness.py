# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
import pytest

from tools.harness import Results, finish, replace_rows, table


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
