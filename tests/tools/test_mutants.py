# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
import importlib.util
import json
import sys
from pathlib import Path

import pytest

TOOL = Path(__file__).resolve().parents[2] / 'tools/soak/mutants.py'
CODE = '''\
def clamp(x: int) -> int:
    """At least 0."""
    if x < 0:
        return 0
    return x


def unwatched(x):
    return x + 1
'''
TESTS = '''\
import sys

import pytest

from mmvidattn.tiny import clamp


@pytest.mark.parametrize('x', [-3, 0, 5])
def test_clamp(x):
    assert clamp(x) == max(x, 0)


def test_fails_anyway():
    assert clamp(-1) == 0 and 'unbroken' == 'broken'
'''


@pytest.fixture
def mutants(monkeypatch):
    spec = importlib.util.spec_from_file_location('soak_mutants', TOOL)
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, 'soak_mutants', module)
    spec.loader.exec_module(module)
    return module


def test_batches_begin_with_one_test_and_end_at_the_limit(mutants):
    tests = [('a', 8.), ('b', 3.), ('c', 30.), ('d', 90.)]
    assert mutants.batches(tests, 10., 45.) == [[('a', 8.)], tests[1:3]]
    # One that takes too long does not keep back those behind it.
    assert mutants.batches(tests[::-1], 10., 95.) == [
        tests[3:], tests[1:2]]
    assert mutants.batches([tests[0], *tests[:0:-1]], 12., 60.) == [
        tests[:2], tests[2:3]]
    assert mutants.batches(tests[2:], 10., 200.) == [tests[2:3], tests[3:]]
    assert mutants.batches([], 10., 45.) == []


def test_annotations_do_not_run(mutants):
    runs = mutants._what_runs
    assert runs('def f(x: int | None) -> int: return x') == runs(
        'def f(x: int & None) -> str: return x')
    assert runs('y: int = 3') == runs('y: float = 3')
    assert runs('y: int = 3') != runs('y: int = 4')
    assert runs('def f(:') is None


@pytest.fixture
def tiny(mutants, monkeypatch, tmp_path):
    """A checkout of one module and its tests; those that reach its lines."""
    pytest.importorskip('cosmic_ray', reason='needs ".[mutation]"')
    coverage = pytest.importorskip('coverage', reason='needs ".[mutation]"')
    root = tmp_path / 'mmvidattn'
    for path, text in {
            'pyproject.toml':
            '[tool.pytest.ini_options]\npythonpath = ["."]\n',
            'mmvidattn/__init__.py': '', 'mmvidattn/tiny.py': CODE,
            'tests/test_tiny.py': TESTS}.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text)
    data = coverage.CoverageData(str(tmp_path / '.coverage'))
    # Of another checkout; in a program that a test starts, it is its context.
    file = '/home/mmvidattn/mmvidattn/tiny.py'
    for context, lines in {
            '': [1, 8], 'tests.test_tiny.test_clamp': [3, 4, 5],
            'tests/test_tiny.py::test_fails_anyway (call)': [
                1, 3, 4, 8, 9]}.items():
        data.set_context(context)
        data.add_lines({file: lines})
    data.write()
    (tmp_path / 'junit.xml').write_text('<testsuite>' + ''.join(
        f'<testcase classname="tests.test_tiny" name="{name}" '
        f'file="tests/test_tiny.py" time="{time}"/>' for name, time in (
            ('test_clamp[-3]', .25), ('test_clamp[0]', .25),
            ('test_fails_anyway', .1))) + '</testsuite>')
    monkeypatch.setattr(mutants, 'ROOT', root)
    run = mutants._run_pytest

    def run_afresh(*args, **kwargs):
        for name in [x for x in sys.modules if x.startswith('mmvidattn')]:
            del sys.modules[name]
        run(*args, **kwargs)

    monkeypatch.setattr(mutants, '_run_pytest', run_afresh)
    return tmp_path


def test_finds_the_tests_that_reach_a_line(mutants, tiny):
    suite = mutants.Suite(tiny / '.coverage', tiny / 'junit.xml')
    clamp = 'tests/test_tiny.py::test_clamp', .5
    fails = 'tests/test_tiny.py::test_fails_anyway', .1

    def of(line):
        return suite.of(mutants.Mutant('mmvidattn/tiny.py', line, '', 0))

    assert of(3) == [fails, clamp]
    # Those that reach the line first; then the others of the file.
    assert of(5) == [clamp, fails]
    assert of(8) == [fails, clamp]
    assert suite.of(mutants.Mutant('mmvidattn/other.py', 3, '', 0)) == []


def test_copies_all_but_what_is_large(mutants, tiny):
    for path in 'data/video.mp4', 'tools/data/make.py', '.git/HEAD':
        (mutants.ROOT / path).parent.mkdir(parents=True)
        (mutants.ROOT / path).touch()
    copy = mutants._copy(tiny / 'copy')
    assert (copy / 'tools/data/make.py').exists()
    assert not (copy / 'data').exists() and not (copy / '.git').exists()


def test_tells_what_is_noticed_from_what_survives(
        mutants, tiny, monkeypatch, capsys):
    out = tiny / 'mutants.json'
    monkeypatch.setattr(sys, 'argv', [
        'mutants.py', 'mmvidattn', '--sample', '99', '--jobs', '2',
        '--coverage', str(tiny / '.coverage'), '--out', str(out),
        '--durations', str(tiny / 'junit.xml')])
    with pytest.raises(SystemExit):
        mutants.main()
    found = {x['before']: x for x in json.loads(out.read_text())}
    # Its only test fails on the code as it is, and has noticed nothing.
    assert found['return x + 1']['outcome'] == 'survived'
    printed = capsys.readouterr().out
    assert 'fails by itself: tests/test_tiny.py::test_fails_anyway' in printed
    assert 'survived: mmvidattn/tiny.py:9' in printed
    assert (tiny / 'mmvidattn/mmvidattn/tiny.py').read_text() == CODE
