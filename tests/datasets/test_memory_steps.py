# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
import json

import pytest

from mmvidattn.datasets.feature_windows import (
    dense_long_indices,
    long_padding_mask,
    training_long_indices,
)


@pytest.fixture(scope='session')
def golden_sampler(shared_dir):
    return json.loads(
        (shared_dir / 'goldens/testra/golden_sampler.json').read_text())


def shortened(indices, like):
    """Shorten a list like the golden data: both ends, with dots between."""
    indices = indices.tolist()
    return indices if '...' not in like else [
        *indices[:3], '...', *indices[-3:]]


@pytest.mark.parametrize('name', [
    'thumos_testra_box_small', 'thumos_lstr_small', 'ek100_testra_box_small',
    'thumos_testra_box_full', 'ek100_testra_box_full'])
def test_dense_golden(golden_sampler, name):
    case = golden_sampler[name]
    assert len(case['rows']) > 10
    for row in case['rows']:
        result = dense_long_indices(row['work_start'], case['long_len'],
                                    case['rate'], 'lstr' not in name)
        assert len(result) == case['n']
        assert shortened(result, row['long_indices']) == row['long_indices']
        assert long_padding_mask(result).sum() == row['num_masked']


def test_training_golden(golden_sampler):
    for row in golden_sampler['train_segment_sampler']:
        indices = training_long_indices(
            row['work_start'], row['long_len'], row['long_len'] // row['n'],
            row['repo'] == 'lstr')
        assert len(indices) == row['n']
        got = indices.tolist()
        if len(row['indices']) < row['n']:
            got = got[:4] + got[-4:]
        assert got == row['indices']
        assert long_padding_mask(indices).sum() == row['num_masked']
