# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.

import numpy as np
import pytest

from tools.data.online.make_synthetic import (
    Recipe,
    make_stream,
)

TOOL = 'data/online/make_synthetic.py'
RECIPE = Recipe()
STREAMS = 60


@pytest.fixture(scope='module')
def streams():
    return [make_stream(0, 'train', i, RECIPE) for i in range(STREAMS)]


def actions(events):
    return [e for e in events if 'cue' not in e['event']]


def test_targets_match_the_events(streams):
    for features, targets, events in streams:
        expected = np.zeros_like(targets)
        for event in actions(events):
            column = RECIPE.names.index(event['event'])
            expected[event['start']:event['end'], column] = 1
        expected[:, 0] = ~expected.any(axis=1)
        assert (targets == expected).all()
        assert (targets.sum(axis=1) == 1).all()
        assert features.shape == (len(targets), 48)
        assert features.dtype == np.float32


def test_cues_have_the_distances_of_the_recipe(streams):
    for _, _, events in streams:
        cues = [e for e in events if e['event'] == 'long_cue']
        for action in actions(events):
            kind, _, label = action['event'].rpartition('_')
            before = [e for e in events if e['event'] == f'{kind}_cue'
                      and e['end'] <= action['start']]
            if kind == 'recent':
                cue = before[-1]
                # Within the work memory of the action's last step.
                assert action['end'] - cue['start'] <= 32
            elif kind == 'long':
                cue = before[-1]
                assert 100 <= action['start'] - cue['start'] <= 400
                # All other cues are farther away.
                assert all(action['end'] - e['start'] > 440 for e in cues
                           if e['start'] < cue['start'])
            else:
                continue
            assert cue['of'] == int(label)


def test_writes_the_layout(run_main, capsys, tmp_path):
    out = tmp_path / 'set'
    options = out, '--train', 3, '--val', 2, '--steps', 600
    run_main(TOOL, *options)
    names = (out / 'train.txt').read_text().split()
    assert names == ['train_0000', 'train_0001', 'train_0002']
    assert len((out / 'val.txt').read_text().split()) == 2
    classes = (out / 'classes.txt').read_text().split()
    for name in names:
        rgb, flow, targets = (
            np.load(out / folder / f'{name}.npy', allow_pickle=False)
            for folder in ('rgb', 'flow', 'target_perframe'))
        assert rgb.shape == (len(targets), 32) and flow.shape[1] == 16
        assert targets.shape[1] == len(classes) == 10
    run_main(TOOL, *options)
    assert 'already' in capsys.readouterr().out
    with pytest.raises(SystemExit, match='--overwrite'):
        run_main(TOOL, out, '--train', 4, '--val', 2)
    (tmp_path / 'mine').mkdir()
    (tmp_path / 'mine/notes').touch()
    with pytest.raises(SystemExit, match='mine is not empty'):
        run_main(TOOL, tmp_path / 'mine')
