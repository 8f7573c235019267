# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Results that no change may alter; see goldens/behavior.py."""
import copy
import json

import pytest
from goldens.behavior import FILE, KINDS, compute, differences

from mmvidattn.export import export

STORED = json.loads(FILE.read_text())


# An export compares its file with the model, whose logits are another kind.
@pytest.mark.parametrize('kind', [pytest.param(
    kind, marks=pytest.mark.slow if kind == 'export' else ()) for kind in KINDS
])
def test_results_are_those_of_the_last_accepted_state(kind, monkeypatch):
    if kind == 'export':
        pytest.importorskip('onnxruntime')
        # Both files have the same graph.
        capture, kept = export.capture, []
        monkeypatch.setattr(export, 'capture', lambda program: (
            kept or kept.append(capture(program)) or kept)[0])
    assert differences(compute(kind), STORED[kind], kind) == []


def test_names_each_difference():
    got = copy.deepcopy(STORED)
    assert differences(got, STORED) == []
    got['logits']['default'][2] += 1e-3
    got['stream']['clips']['events'][0]['start'] = 0.04
    del got['configs']['linear_ff_ssv2']['data']
    got['export']['pt2'].append([])
    places = [line.partition(':')[0] for line in differences(got, STORED)]
    assert places == ['.configs.linear_ff_ssv2', '.export.pt2',
                      '.logits.default.2', '.stream.clips.events.0.start']
