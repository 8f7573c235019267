# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Helpers for readers of annotation lists."""
import csv
import random

import pytest

from mmvidattn.datasets.annotations.labeled_videos import read_labeled_videos
from mmvidattn.datasets.annotations.segment_csv import read_segment_file
from mmvidattn.datasets.annotations.video_segment import (
    read_columns,
    seconds,
    steps_of,
)


@pytest.mark.parametrize('read', [read_labeled_videos, read_segment_file])
@pytest.mark.parametrize('text, error', [
    ('video,start,end,label\na,0,1,Jump, high\na,2,3,Jump, low',
     r'line 2: expected 4 fields .*got 5: a, 0, 1, Jump, high'),
    ('video,start,end,label,label\na,0,1,x,y',
     'must have one column label, got 2: label, label'),
    ('file,video,start,end,label\na,b,0,1,x',
     'must have one column video, got 2: file, video'),
    ('video,start,stop,end,label\na,0,1,2,x',
     'must have one column end, got 2: stop, end'),
    (f'video,start,end,label\na,0,1,{"x" * 140_000}',
     'line 2: invalid CSV: field larger than'),
    ('video,start,end,label\na,0,1,"x\nb,0,1,y',
     'line 3: invalid CSV: unexpected end'),
    ('video,start,end,label\na,-0:30,1:00,x', "got '-0:30'"),
    ], ids=['more-fields', 'two-labels', 'file-and-video', 'stop-and-end',
            'huge-field', 'open-quote', 'negative-time'])
def test_rejects_ambiguous_lines(tmp_path, read, text, error):
    path = tmp_path / 'own.csv'
    path.write_text(text)
    with pytest.raises(ValueError, match=error):
        read(path)


def test_keeps_commas_in_quotes_and_ignores_padding(tmp_path):
    path = tmp_path / 'own.csv'
    path.write_text('video,start,end,label,,\na,0,1, "Jump, high",,,,\n'
                    'b,0,1:00.5,"say ""go""",,\n')
    wanted = [('a', 'Jump, high', 1), ('b', 'say "go"', 60.5)]
    assert [(v.file, v.label, v.end)
            for v in read_labeled_videos(path)[1]] == wanted
    assert [(s.video, s.labels['action'], s.end)
            for s in read_segment_file(path)] == wanted


def test_reads_what_the_csv_module_writes(tmp_path):
    rng = random.Random(0)
    for _ in range(80):
        rows = [[''.join(rng.choices(' ",;\t\n\'\\aé跳\x0b\x85\u2028\ufeff',
                                     k=rng.randrange(9))).strip()
                 for _ in range(3)] for _ in range(rng.randrange(6))]
        rows = [row for row in rows if any(row)]
        with (tmp_path / 'a.csv').open('w', newline='') as file:
            csv.writer(file).writerows([['a', 'b', 'c'], *rows])
        assert [[*row.values()]
                for row, _ in read_columns(tmp_path / 'a.csv', 'abc')] == rows


def test_reads_times():
    for word, value in {
            '1.5': 1.5, 2: 2, '-3': -3, '1e1': 10, '90:00': 5400, '1:05': 65,
            '00:01:02.25': 62.25, ' 0:30 ': 30, '100:00:01': 360001}.items():
        assert seconds(word, 'here') == value
    for word in ('-0:30', '0:-30', '+1:00', '-1:00:00', '1:60', '1:60:00',
                 '1:2:3:4', '0:1e1', ':30', '1:', '', 'soon', 'nan', 'inf',
                 '1_000', '1:nan', '9' * 5000, '9' * 5000 + ':00'):
        with pytest.raises(ValueError, match='here: expected seconds, mm:ss'):
            seconds(word, 'here')


@pytest.mark.parametrize('length', [7, 8, 15, 4000, 111209])
def test_steps_match_the_released_code(length):
    for start in range(1, 120000, 997):
        end = start + length
        assert steps_of(start / 30, end / 30, 4) == (
            int(start / 30 * 4), -int(-(end / 30 * 4) // 1))
