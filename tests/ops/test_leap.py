# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
import json

import pytest
import torch

from mmvidattn.ops.leap import leap_pair, leap_step


def _order(num_frames, level):
    """Return the frames of each pair."""
    numbers = torch.arange(num_frames).view(1, num_frames, 1)
    return leap_pair(numbers, level)


def test_pairs_of_the_released_code(shared_dir):
    path = shared_dir / 'goldens/laps/leap_index.json'
    tables = json.loads(path.read_text())
    # Every level of 8, 16, 32 and 64 frames.
    assert len(tables) == 3 + 4 + 5 + 6
    for name, table in tables.items():
        T, level = (int(part[1:]) for part in name.split('_'))
        pairs = _order(T, level)
        assert pairs.T.tolist() == [table['A'], table['B']]
        assert leap_step(T, level) == table['S']
        # The released code orders all first frames before all second ones.
        assert pairs.T.flatten()[table['reverse']].tolist() == list(range(T))


@pytest.mark.parametrize('T, level, allowed', [
    (8, 4, r'\[1, 2, 3\]'), (8, 0, r'\[1, 2, 3\]'), (8, -1, r'\[1, 2, 3\]'),
    (6, 3, r'\[1, 2\]'), (7, 1, 'must be even'), (1, 1, 'must be even')])
def test_rejects_frames_that_form_no_pairs(T, level, allowed):
    with pytest.raises(ValueError, match=f'{T} frames.*{level}; .*{allowed}'):
        leap_pair(torch.zeros(1, T, 2), level)
