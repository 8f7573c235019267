# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
import json
import shutil

import pytest

from tools.soak import reliability as tool

pytestmark = pytest.mark.slow

REPORT = '''
<testsuites><testsuite>
<testcase name="a"/>
<testcase name="b"><properties><property name="times" value="48"/></properties>
</testcase>
<testcase name="c"><skipped/></testcase>
{more}
</testsuite></testsuites>'''


def test_rejects_results_of_another_command(tmp_path):
    shutil.copytree(tool.RESULTS, tmp_path / 'results')
    path = tmp_path / 'results/sigkill.json'
    result = json.loads(path.read_text())
    path.write_text(json.dumps(dict(result, command='python other.py')))
    with pytest.raises(ValueError, match='is the result of python other.py'):
        tool.page(tmp_path / 'results')
    path.unlink()
    page = tool.page(tmp_path / 'results').splitlines()
    line, = (line for line in page if line.endswith('--trials 8` |'))
    assert '| not run here yet |' in line


def test_losses_are_counted(tmp_path):
    out = tmp_path / 'out'
    out.write_text(REPORT.format(more=''))
    assert tool.read_tests(out) == (49, 0, '')
    for result in 'failure', 'error':
        out.write_text(REPORT.format(
            more=f'<testcase name="d"><{result}/></testcase>'))
        assert tool.read_tests(out) == (50, 1, 'fails: d')
    out.write_text('{"differences": []}\n{"differences": ["weight"]}\n')
    assert tool.read_trials(out) == (
        2, 1, '1 runs; 1 of 2 ended bit-equal')
    check = dict(steps=1000, bad_frames=3, not_finite=0, error=1e-7,
                 resident=2**30)
    out.write_text(json.dumps(check) + '\n' + json.dumps(
        dict(check, steps=2000, not_finite=4, error=2e-7)))
    times, failed, lost = tool.read_stream(out)
    assert (times, failed) == (3, 4) and '4 of 2,000 scores' in lost
    service = dict(faults=dict(kill=2, jump=3), wrong=[],
                   sources=[dict(compared=600), dict(compared=500)],
                   process=dict(seconds=1500, memory_mib=[700., 710., 711.]))
    out.write_text(json.dumps(service))
    assert tool.read_service(out) == (
        5, 0, 'nothing: 1,100 actions compared; the longest process ran 25 '
        'minutes, with 710 MiB in the middle and 711 at the end')
    flood = dict(connections=900, wrong=[], visits=7, refused=0, usage=dict(
        handles_most=44., memory_middle=500., memory_end=501.),
        steps=[dict(calm=4., flood=4.), dict(calm=4., flood=3.96)])
    flooded = tmp_path / 'flood'
    flooded.write_text(json.dumps(flood))
    assert tool.read_flood(flooded) == (
        900, 0, 'nothing: 99% of the steps arrived, and 7 of 7 clients with '
        'the token were admitted; at most 44 handles; memory 500 MiB in the '
        'middle and 501 at the end')
    flooded.write_text(json.dumps(dict(flood, wrong=['a', 'b'], usage={})))
    assert tool.read_flood(flooded) == (900, 2, 'a; b')
    out.write_text(json.dumps(dict(service, wrong=['a clip', 'a start'])))
    times, failed, lost = tool.read_service(out)
    assert (times, failed) == (5, 2) and lost.startswith('a clip; a start: ')


def test_page_marks_losses_and_rows_need_results(tmp_path):
    shutil.copytree(tool.RESULTS, tmp_path / 'results')
    path = tmp_path / 'results/sigkill.json'
    result = json.loads(path.read_text())
    path.write_text(json.dumps(dict(result, failed=1, lost='1 runs')))
    assert '| **LOST** 1 runs |' in tool.page(tmp_path / 'results')
    # A command that fails before it writes its results.
    row = tool.Row('', '-m there_is_no_such_module')
    with pytest.raises(RuntimeError, match='wrote no results'):
        tool.run(row)


def test_quick_form_of_all(run_tool, tmp_path):
    """Takes minutes, mostly for broken videos and two nodes."""
    done = run_tool('soak/reliability.py', '--run', '--quick', '--results',
                    tmp_path / 'results', '--page', tmp_path / 'page.md',
                    cwd=tmp_path, limit=3000)
    assert done.returncode == 0, done.stdout + done.stderr
    assert '**LOST**' not in (tmp_path / 'page.md').read_text()
