# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
import json

import pytest

pytest.importorskip('uvicorn')
from tools.soak import flood  # noqa: E402

pytestmark = pytest.mark.slow
START, END = 100., 400.


@pytest.mark.parametrize('memory, most, rest, wrong', [
    (500., 50, 12, []), (500., 90, 12, ['90 handles, more than']),
    (500., 50, 20, ['20 handles at the end, 12 before']),
    (560., 50, 12, ['memory grew from 500 to 560'])])
def test_finds_growth_of_memory_and_handles(memory, most, rest, wrong):
    rows = [(t, 500. if t < 300 else memory,
             12 if t < START else most if t < END else rest, 20, 0.)
            for t in range(40, 425)]
    result, lines = flood.check_usage(rows, START, END)
    assert len(lines) == len(wrong)
    assert all(a.startswith(b) for a, b in zip(lines, wrong))
    assert (result['handles_calm'], result['handles_most']) == (12, most)
    assert (result['memory_middle'], result['memory_end']) == (500, memory)
    assert flood.check_usage(rows[:300], START, END)[1]


def test_half_a_minute(run_tool, tmp_path):
    done = run_tool('soak/flood.py', '--minutes', 0.5, '--rate', 100,
                    '--open', 50, '--out', 'out.json', cwd=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.endswith('passed\n')
    result = json.loads((tmp_path / 'out.json').read_text())
    assert result['wrong'] == [] and 1500 < result['connections'] <= 3100
