# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
import faulthandler
import json
import sys
import textwrap

import pytest

from tools.soak import mutants

pytestmark = pytest.mark.slow
CODE = '''\
def clamp(x: int) -> int:
    """At least 0."""
    if x < 0:
        return 0
    return x


def untested(x):
    return x + 1


LIMIT = 3
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
CONSTANTS = '''\
from mmvidattn import (
    tiny,
)


def test_limit():
    assert tiny.LIMIT == 3
'''


def test_batches_start_with_one_test_and_end_at_the_limit():
    tests = [('a', 8.), ('b', 3.), ('c', 30.), ('d', 90.)]
    assert mutants.batches(tests, 10., 45.) == [[('a', 8.)], tests[1:3]]
    # A test that takes too long does not block the tests after it.
    assert mutants.batches(tests[::-1], 10., 95.) == [
        tests[3:], tests[1:2]]
    assert mutants.batches([tests[0], *tests[:0:-1]], 12., 60.) == [
        tests[:2], tests[2:3]]
    assert mutants.batches(tests[2:], 10., 200.) == [tests[2:3], tests[3:]]
    assert mutants.batches([], 10., 45.) == []


EDITS = {
    'RemoveCall': {
        'f(g(x))': ['pass', 'f((x))'],
        'y = x.abs().sum(0)': ['y = (x.abs())', 'y = (x).sum(0)'],
        # Functions of modules and instances become their argument.
        'import np\ny = np.abs(x)': ['import np\ny = (x)'],
        'y = self.norm(x)': ['y = (x)'],
        'y = f(*x) + f(a for a in x) + f()': [],
        'raise ValueError(x)': [], '@f(x)\ndef g(): pass': [],
        "y = f'{f(x)}'": [],
        'for x in (\n        f(x)): pass': ['for x in (\n        (x)): pass'],
        "y = 'ä', f(x)": ["y = 'ä', (x)"]},
    'DropKeyword': {
        'f(x, a=1, *y, b=(2,), **z)': [
            'f(x, *y, b=(2,), **z)', 'f(x, a=1, *y, **z)'],
        'f(\n  a=1)': ['f()'], 'def f(*, a=1): pass': []},
    'SwapValues': {
        'f(a, b, c[0], d[1], 1, 2, 2, "x")': [
            'f(b, a, c[0], d[1], 1, 2, 2, "x")',
            'f(a, b, d[1], c[0], 1, 2, 2, "x")',
            'f(a, b, c[0], d[1], 2, 1, 2, "x")'],
        'f(a=x, b=y)': ['f(a=y, b=x)'], 'x, y = z': ['y, x = z'],
        'max(a, b)': [], 'a in (b, c)': [], 'isinstance(a, (b, c))': []},
    'ReturnEarly': {
        'def f(x):\n    x = g(x)\n    return (x,\n      1)': [
            'def f(x):\n    return ((x,\n      1))\n    x = g(x)\n'
            '    return (x,\n      1)'],
        # `y` does not exist before its first assignment.
        'def f(x):\n    y = g(x)\n    y += 1\n    return y': [
            'def f(x):\n    y = g(x)\n    return (y)\n    y += 1\n'
            '    return y'],
        'def f(x):\n  """Doc."""\n  yield x': [
            'def f(x):\n  """Doc."""\n  return\n  yield x'],
        'def f(x):\n    return x': []},
    'RemoveCheck': {
        'if x:\n    y = 1\n    raise z\nelif y: return': [
            'if False:\n    y = 1\n    raise z\nelif y: return',
            'if x:\n    y = 1\n    raise z\nelif False: return'],
        'if x: y = 1': [],
        'y = a and (b or c)': [
            'y = ((b or c))', 'y = ((a))', 'y = a and (((c)))',
            'y = a and (((b)))'],
        'y = a & b.all() | c': [
            'y = (a & b.all())', 'y = (c)', 'y = (a) | c',
            'y = (b.all()) | c'],
        'def f(x: a | b): pass': []},
}


@pytest.mark.parametrize('operator, source', [
    (operator, source) for operator, sources in EDITS.items()
    for source in sources])
def test_edits_of_each_operator(operator, source):
    edits = mutants.find_edits(source)[f'fault/{operator}']
    results = [edit.apply(source) for edit in edits]
    assert sorted(results) == sorted(EDITS[operator][source])
    for broken in results:
        compile(f'def f():\n{textwrap.indent(broken, "  ")}', '', 'exec')


def test_edit_has_the_line_of_its_change():
    source = 'f(x,\n  a=1)\nif a:\n  raise b\ny = (a and\n  b)'
    lines = {name: sorted(edit.line for edit in edits)
             for name, edits in mutants.find_edits(source).items()}
    assert lines == {'fault/RemoveCall': [1], 'fault/DropKeyword': [2],
                     'fault/SwapValues': [], 'fault/ReturnEarly': [],
                     'fault/RemoveCheck': [3, 5, 6]}


@pytest.fixture
def tiny(monkeypatch, tmp_path):
    """Checkout of one module, its tests, and their coverage."""
    pytest.importorskip('cosmic_ray', reason='needs ".[mutation]"')
    coverage = pytest.importorskip('coverage', reason='needs ".[mutation]"')
    root = tmp_path / 'mmvidattn'
    for path, text in {
            'pyproject.toml':
            '[tool.pytest.ini_options]\npythonpath = ["."]\n',
            'mmvidattn/__init__.py': '', 'mmvidattn/tiny.py': CODE,
            'tests/test_tiny.py': TESTS,
            'tests/test_constants.py': CONSTANTS}.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text)
    data = coverage.CoverageData(str(tmp_path / '.coverage'))
    # Paths are from a different checkout and from a copy of it. In a program
    # that a test starts, the context is the node of the test.
    file, copy = (f'/home/{name}/mmvidattn/tiny.py'
                  for name in ('mmvidattn', 'copy'))
    for context, name, lines in (
            ('', file, [1, 8]),
            ('tests.test_tiny.test_clamp', file, [3, 4, 5]),
            ('tests/test_tiny.py::test_fails_anyway (call)', copy,
             [1, 3, 4, 8, 9])):
        data.set_context(context)
        data.add_lines({name: lines})
    # Copies that were never imported, in arbitrary order.
    for i in range(20):
        data.touch_file(f'/home/copy_{i}/mmvidattn/tiny.py')
    data.write()
    (tmp_path / 'junit.xml').write_text('<testsuite>' + ''.join(
        f'<testcase classname="tests.test_{module}" name="{name}" '
        f'file="tests/test_{module}.py" time="{time}"/>'
        for module, name, time in (
            ('tiny', 'test_clamp[-3]', .25), ('tiny', 'test_clamp[0]', .25),
            ('tiny', 'test_fails_anyway', .1),
            ('constants', 'test_limit', .05))) + '</testsuite>')
    monkeypatch.setattr(mutants, 'ROOT', root)
    run = mutants._run_pytest

    def run_afresh(*args, **kwargs):
        for name in [x for x in sys.modules if x.startswith('mmvidattn')]:
            del sys.modules[name]
        run(*args, **kwargs)

    monkeypatch.setattr(mutants, '_run_pytest', run_afresh)
    return tmp_path


def test_finds_the_tests_that_reach_a_line(tiny):
    suite = mutants.Suite(tiny / '.coverage', tiny / 'junit.xml')
    clamp = 'tests/test_tiny.py::test_clamp', .5
    fails = 'tests/test_tiny.py::test_fails_anyway', .1

    def of(line):
        return suite.of(mutants.Mutant('mmvidattn/tiny.py', line, '', 0))

    # First tests that reach the line, then tests named after the module, then
    # tests that import it.
    limit = 'tests/test_constants.py::test_limit', .05
    assert of(3) == [fails, clamp, limit]
    assert of(5) == [clamp, fails, limit]
    assert of(12) == [fails, clamp, limit]
    assert suite.of(mutants.Mutant('mmvidattn/other.py', 3, '', 0)) == []


def test_draws_each_kind_and_only_code_that_compiles(tiny):
    drawn = [mutants.draw(['mmvidattn'], 99, seed) for seed in range(9)]
    assert mutants.draw(['mmvidattn'], 99, seed=8) == drawn[-1]
    drawn = sum(drawn, [])
    assert {'fault/ReturnEarly', 'fault/RemoveCheck'} < {
        x.operator for x in drawn}
    for mutant in drawn:
        compile(mutants.mutate(mutant), '', 'exec')


def test_continues_an_interrupted_run(tiny, monkeypatch):
    drawn = mutants.draw(['mmvidattn'], 99, seed=0)
    out = tiny / 'mutants.json'
    for mutant in drawn[1:]:
        mutant.outcome = 'noticed'
    mutants.write(drawn, out)
    tested = []
    monkeypatch.setattr(
        mutants, 'run_all', lambda waiting, *args: tested.extend(waiting) or
        waiting)
    monkeypatch.setattr(sys, 'argv', [
        'mutants.py', 'mmvidattn', '--sample', '99', '--goal', '0',
        '--coverage', str(tiny / '.coverage'), '--out', str(out),
        '--durations', str(tiny / 'junit.xml')])
    mutants.main()
    assert [mutants.place(x) for x in tested] == [mutants.place(drawn[0])]


def test_reports_survivors_and_flaky_tests(tiny, monkeypatch, capsys):
    # A forked pytest would wait for the thread of the time limit.
    faulthandler.cancel_dump_traceback_later()
    out = tiny / 'mutants.json'
    monkeypatch.setattr(sys, 'argv', [
        'mutants.py', 'mmvidattn', '--sample', '99', '--jobs', '2',
        '--coverage', str(tiny / '.coverage'), '--out', str(out),
        '--durations', str(tiny / 'junit.xml')])
    with pytest.raises(SystemExit):
        mutants.main()
    results = {x['before']: x for x in json.loads(out.read_text())}
    # The only test of this line fails on the unbroken code too.
    assert results['return x + 1']['outcome'] == 'survived'
    printed = capsys.readouterr().out
    assert 'fails by itself: tests/test_tiny.py::test_fails_anyway' in printed
    assert 'survived: mmvidattn/tiny.py:9' in printed
    assert (tiny / 'mmvidattn/mmvidattn/tiny.py').read_text() == CODE
