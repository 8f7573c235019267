# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Readers of published formats; lines/ has some real lines of each."""
import csv
from pathlib import Path

import pytest

from mmvidattn.datasets.annotations import published
from mmvidattn.datasets.annotations.segment_csv import read_segment_file

LINES = Path(__file__).parent / 'lines'
EK100 = LINES / 'ek100'


@pytest.mark.parametrize('header', [
    '', '\ufeffid,video,start_frame,end_frame,verb,noun,action\n'])
def test_rulstm(tmp_path, header):
    path = tmp_path / 'training.csv'
    text = (EK100 / 'training.csv').read_text()
    path.write_text(header + text.replace('\n', '\r\n') + '\n', newline='')
    result = published.read_rulstm(path, num_classes=published.EK100_CLASSES)
    assert [one.id for one in result] == [
        'P01_01_0', 'P01_01_1', 'P01_01_10', 'P01_01_100']
    assert result[0][1:6] == (
        'P01_01', 4 / 30, 101 / 30, dict(verb=3, noun=3, action=2413),
        f'{path}, line {2 if header else 1}')


@pytest.mark.parametrize('line, error', [
    ('P01_01_1,P01_01,185,131,6,114,3331',
     'line 5: a segment must have 0 <= start < end, got 185 to 131 frames'),
    ('P01_01_2,P01_01,x,131,6,114,3331', 'line 5: expected id, video, start'),
    ('P01_01_2,P01_01,1,131,97,114,3331', 'verb must be in 0 to 96, got 97'),
    ('P01_01_2,P01_01,1,131,6,-1,3331', 'noun must be in 0 to 299, got -1'),
    ('P01_01_1,P01_01,1,131,6,114,3331',
     'line 5: the id P01_01_1 .* line 2')])
def test_rejects_invalid_segment(tmp_path, line, error):
    path = tmp_path / 'training.csv'
    path.write_text((EK100 / 'training.csv').read_text() + line + '\n')
    options = dict(num_classes=published.EK100_CLASSES)
    with pytest.raises(ValueError, match=error):
        published.read_rulstm(path, **options)
    if 'expected' not in error:
        faults = []
        result = published.read_rulstm(path, fault=faults.append, **options)
        assert len(result) == 4 and len(faults) == 1


def test_invalid_first_line_is_not_a_header(tmp_path):
    path = tmp_path / 'training.csv'
    for first in ('1,P01_01,4.5,101.5', '\ufeff1,P01_01,x1,101,3,3,2413',
                  'one,P01_01,4f,101f,3v,3n,2413a'):
        path.write_text(f'{first}\n2,P01_01,4,101,3,3,2413\n', 'utf-8')
        with pytest.raises(ValueError, match='line 1: expected id, video, st'):
            read_segment_file(path)


# Complete published files; the expected counts use only the csv module.


@pytest.mark.parametrize('name, number, classes', [
    ('ek100_rulstm/validation.csv', 9668, published.EK100_CLASSES),
    ('ek100_rulstm/test_timestamps.csv', 13092, None),
    ('egtea_rulstm/validation1.csv', 2022, published.EGTEA_CLASSES)])
def test_real_rulstm(real, name, number, classes):
    result = read_segment_file(real / name, num_classes=classes)
    with open(real / name, newline='') as file:
        rows = list(csv.reader(file))
    assert len(rows) == number
    assert [(*one[:2], one.labels.get('action')) for one in result] == [
        (*row[:2], int(row[6]) if len(row) > 6 else None) for row in rows]


def test_real_data_info(real):
    for name in 'testra', 'lstr':
        path = real / f'{name}_data_info.json'
        classes, train, test = published.read_data_info(path, 'THUMOS')
        assert tuple(classes[1:]) == published.THUMOS14
        assert (len(train), len(test)) == (200, 213)
        classes, train, test = published.read_data_info(path, 'TVSeries')
        assert tuple(classes[1:]) == published.TVSERIES
        assert dict(train=tuple(train), test=tuple(test)) == (
            published.TVSERIES_VIDEOS)
