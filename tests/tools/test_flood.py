# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
import importlib.util
import json
import sys
from pathlib import Path

import pytest

pytest.importorskip('uvicorn')
FOLDER = Path(__file__).resolve().parents[2] / 'tools/soak'


@pytest.fixture
def flood(monkeypatch):
    # Beside the program.
    monkeypatch.syspath_prepend(str(FOLDER))
    spec = importlib.util.spec_from_file_location(
        'flood', FOLDER / 'flood.py')
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


START, END = 100., 400.


@pytest.mark.parametrize('memory, most, rest, wrong', [
    (500., 50, 12, []), (500., 90, 12, ['90 handles, which is above']),
    (500., 50, 20, ['20 handles in the end, 12 before']),
    (560., 50, 12, ['memory grew from 500 to 560'])])
def test_sees_what_a_flood_takes(flood, memory, most, rest, wrong):
    rows = [(t, 500. if t < 300 else memory,
             12 if t < START else most if t < END else rest, 20, 0.)
            for t in range(40, 425)]
    found, lines = flood.check_usage(rows, START, END)
    assert len(lines) == len(wrong)
    assert all(a.startswith(b) for a, b in zip(lines, wrong))
    assert (found['handles_calm'], found['handles_most']) == (12, most)
    assert (found['memory_middle'], found['memory_end']) == (500, memory)
    assert flood.check_usage(rows[:300], START, END)[1]


@pytest.mark.parametrize('step, pause, wrong', [
    (0.25, 0, []), (0.3, 0, ['source 1: 3.33 steps a second, 4.00 before']),
    (0.25, 3, ['source 1: no step for 3']), (1e9, 0, ['0.00', 'no step'])])
def test_sees_steps_that_do_not_come(flood, step, pause, wrong):
    page = flood.Page(0, 2)
    calm = [START - 60 + i / 4 for i in range(240)]
    as_before = [START + i / 4 for i in range(1200)]
    after = [t for t in (START + i * step for i in range(1, 1200))
             if not 200 < t < 200 + pause]
    page.steps = [calm + as_before, calm + after]
    found, lines = flood.check_steps(page, START, END)
    assert found[0] == dict(calm=4., flood=4., gap=0.25)
    assert len(lines) == len(wrong)
    assert all(b in a for a, b in zip(lines, wrong))


@pytest.mark.slow
def test_half_a_minute(run_tool, tmp_path):
    done = run_tool('soak/flood.py', '--minutes', 0.5, '--rate', 100,
                    '--open', 50, '--out', 'out.json', cwd=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.endswith('passed\n')
    found = json.loads((tmp_path / 'out.json').read_text())
    assert found['wrong'] == [] and 1500 < found['connections'] <= 3100


@pytest.mark.parametrize('option', ['--minutes', '--rate', '--open'])
def test_rejects(flood, monkeypatch, capsys, option):
    monkeypatch.setattr(sys, 'argv', ['flood.py', option, '0'])
    with pytest.raises(SystemExit):
        flood.main()
    assert 'must be above 0, --open at least 1' in capsys.readouterr().err
