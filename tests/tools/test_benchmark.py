# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Each benchmark in its shortest form, and the check before its times."""
import json
import math

import pytest

from tools.benchmark import common

DIFFERENT = '''
import sys
import torch
sys.path.insert(0, {root!r})
from tools.benchmark import common

def prepare(scale, device, weights):
    return (lambda: None), dict(output=torch.full((3, ), scale))

def benchmarks(args):
    yield 'a table', dict(ours=dict(scale=1.), faster=dict(scale=1.1)), \\
        dict(output=1e-3)

common.run(__file__, '', prepare, lambda parser: None, benchmarks)
'''


@pytest.mark.slow
@pytest.mark.parametrize('words, variants', [
    ('models.py --tiny --tasks step --models linear_ff --checkpointing',
     {'ours', 'transcription', 'ours, with_cp=True'}),
    ('models.py --tiny --models vivit laps --dtype bfloat16',
     {'ours'}),
    ('models.py --tiny --models dualformer --compile --tasks step',
     {'ours', 'ours, compiled'}),
    ('models.py --tiny --models testra', {'ours'}),
    ('streams.py --tables causal --layers 1 --size 32 --history 20',
     {'pass of 16 frames', 'step at frame 16', 'step at frame 20'}),
    ('streams.py --tables step --steps 1', {
        'released', 'smoothing', 'window', 'smoothing, bfloat16'}),
    ('streams.py --tables streams --steps 1 --streams 1 2',
     {'1 streams', '2 streams'}),
    ('decoding.py --seconds 1 --size 96 64 --patterns sparse',
     {'ours', 'PyAV'})],
    ids=lambda x: x.partition(' --dtype')[0] if isinstance(x, str) else '')
def test_shortest_form(run_tool, tmp_path, words, variants):
    program, *options = words.split()
    done = run_tool(f'benchmark/{program}', *options, '--repeats', 1,
                    '--device', 'cpu', '--json', 'out.json', cwd=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    result = json.loads((tmp_path / 'out.json').read_text())
    assert result['machine'] in done.stdout and result['tables']
    for title, table in result['tables'].items():
        assert variants <= table['rows'].keys() and title in done.stdout
        for row in table['rows'].values():
            assert row['seconds'] > 0 and row['ratio'] > 0


@pytest.mark.slow
def test_prints_no_times_while_results_differ(run_tool, tmp_path):
    program = tmp_path / 'program.py'
    program.write_text(DIFFERENT.format(root=str(common.ROOT)))
    done = run_tool(program, '--repeats', 1, '--device', 'cpu', cwd=tmp_path)
    assert done.returncode == 1 and 'faster' not in done.stdout
    assert "no times: results differ by more than their tolerance: {" \
        "'faster: output': 0.1" in done.stderr


def test_nan_and_nothing_are_differences():
    common.require_agreement({'b: y': 1e-4}, dict(y=1e-3))
    for differences in ({}, {'b: y': math.nan}):
        with pytest.raises(SystemExit, match='no times'):
            common.require_agreement(differences, dict(y=1e-3))
