# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Each benchmark in its shortest form, and the check before its times."""
import json
import math

import pytest
from registered import classes_of

from tools.benchmark import attentions, common


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
def test_shortest_form(run_main, tmp_path, capsys, words, variants):
    program, *options = words.split()
    out = tmp_path / 'out.json'
    run_main(f'benchmark/{program}', *options, '--repeats', 1, '--device',
             'cpu', '--json', out)
    result, printed = json.loads(out.read_text()), capsys.readouterr().out
    assert result['machine'] in printed and result['tables']
    for title, table in result['tables'].items():
        assert variants <= table['rows'].keys() and title in printed
        for row in table['rows'].values():
            assert row['seconds'] > 0 and row['ratio'] > 0


def test_nan_and_nothing_are_differences():
    common.require_agreement({'b: y': 1e-4}, dict(y=1e-3))
    for differences in ({}, {'b: y': math.nan}):
        with pytest.raises(SystemExit, match='no times'):
            common.require_agreement(differences, dict(y=1e-3))


def test_page_of_attentions_compares_every_attention():
    options = 'model.backbone.attention'
    types = {row.options[options]['type'] for row in attentions.ROWS.values()
             if options in row.options}
    assert types == {cls.__name__ for cls in classes_of('layers')}
    page = attentions.PAGE.read_text('utf-8')
    for row in attentions.ROWS.values():
        assert f'| {row.row} | {row.note} |' in page, row.row
