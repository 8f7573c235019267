# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""`mmvidattn score` and `mmvidattn tune-thresholds`."""
import json
import shutil

import numpy as np
import pytest

from mmvidattn.commands import main
from mmvidattn.online.event_thresholds import read_thresholds
from mmvidattn.online.frame_scores import FrameScores, ScoredVideos

TRUTH = '''video,start,end,label,subset
v.mp4,1,5,walk,train
v.mp4,8,12,run,train
w.mp4,2,4,walk,test
'''
PREDICTIONS = '''video,start,end,label,score
/x/v.mp4,1.5,5,walk,.9
v,8,10,run,.7
w,7,9,run,.6
w,2,4.5,walk,.5
'''


@pytest.fixture
def files(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / 'truth.csv').write_text(TRUTH)
    (tmp_path / 'predictions.csv').write_text(PREDICTIONS)
    return tmp_path


def run(capsys, *args):
    # Without intervals, which take seconds.
    draws = ['--draws', '0'] * (args[0] == 'score' and '--draws' not in args)
    main([*map(str, args), *draws])
    return capsys.readouterr().out


def write_scores(folder):
    """Write scores of v and w that show the annotated classes weakly."""
    rng = np.random.default_rng(0)
    videos = {}
    for name, events in dict(v=[(1, 5, 1), (8, 12, 2)], w=[(2, 4, 1)]).items():
        scores = np.zeros((56, 3), np.float32)
        for start, end, k in events:
            scores[4 * start:4 * end, k] = .3
        videos[f'/data/{name}.mp4'] = FrameScores(
            4., scores + .1 * rng.random((56, 3), np.float32))
    ScoredVideos(['background', 'walk', 'run'], {0}, videos).write(folder)


def rows(text):
    cells = [[cell.strip() for cell in line.strip('| ').split('|')]
             for line in text.splitlines() if line.startswith('|')]
    return {row[0]: row[1:] for row in cells}


def test_prints_a_table_with_intervals(files, capsys):
    found = rows(text := run(capsys, 'score', 'predictions.csv', 'truth.csv',
                             '--draws', 50))
    assert ('2 videos (0.01 h), 3 annotated events and 4 predicted events'
            in text)
    assert found['F1@50'][:2] == ['0.857', '0.667 to 1.000']
    assert found['edit'][0] == '0.750'
    assert found['run'] == ['1', '2', '1.000', '0.667', '0', '1']
    assert 'pass --videos' in text
    text = run(capsys, 'score', 'predictions.csv', 'truth.csv', '--subset',
               'Test')
    assert '1 video (0.00 h), 1 annotated event and 2 predicted events' in text
    # One video has no interval.
    assert rows(text)['F1@50'][:2] == ['0.667', '-']


@pytest.mark.parametrize('subset, hint', [('val', '; --sub'), ('test', '\n')])
def test_names_videos_without_predictions(files, capsys, subset, hint):
    (files / 'truth.csv').write_text(
        TRUTH.replace('train', subset) + f'x.mp4,7,9,run,{subset}\n')
    text = run(capsys, 'score', 'predictions.csv', 'truth.csv')
    assert ('with events, which count as missed: x.mp4' + hint) in text


def test_ambiguous_is_no_class_of_thumos14(files, capsys):
    """A prediction within an ambiguous segment is in no row."""
    (files / 'truth.csv').write_text(TRUTH + 'w.mp4,6.5,9,Ambiguous,test\n')
    text = run(capsys, 'score', 'predictions.csv', 'truth.csv', '--protocol',
               'thumos14')
    assert '3 annotated events and 3 predicted events' in text
    found = rows(text)
    assert 'Ambiguous' not in found and found['F1@50'][0] == '1.000'
    assert found['run'][:2] + found['run'][3:] == ['1', '1', '1.000', '0', '0']


def test_report(files, capsys):
    write_scores('scores')
    run(capsys, 'score', 'predictions.csv', 'truth.csv', '--scores', 'scores',
        '--report', 'report', '--draws', 20)
    found = json.loads((files / 'report/scores.json').read_text())
    assert found['values']['F1@50']['value'] == pytest.approx(6 / 7)
    assert 0 < found['values']['ECE']['value'] < 1
    assert found['classes'][0]['class'] == 'run'
    text = (files / 'report/report.md').read_text()
    assert '(timelines.png)' in text
    assert (files / 'report/timelines.png').stat().st_size > 5000


def test_videos_give_lengths_and_background(files, capsys, motion_dir):
    (files / 'videos').mkdir()
    for i, name in enumerate('vwz'):
        shutil.copy(motion_dir / f'val/{i:06d}.mp4',
                    files / f'videos/{name}.mp4')
    (files / 'videos/bad.mp4').write_bytes(b'no video')
    text = run(capsys, 'score', 'predictions.csv', 'truth.csv', '--videos',
               'videos')
    assert 'pass --videos' not in text
    assert 'note: 1 video of videos without annotations, counted as ' \
        'videos without events: z.mp4' in text
    assert 'note: 1 unreadable video of videos without annotations left ' \
        'out: bad.mp4' in text
    assert '3 videos (' in text
    write_scores('scores')
    text = run(capsys, 'score', 'predictions.csv', 'truth.csv', '--videos',
               'videos', '--scores', 'scores')
    assert 'without annotations' not in text and '2 videos (' in text


def test_tunes_thresholds(files, capsys):
    write_scores('scores')
    text = run(capsys, 'tune-thresholds', 'scores', 'truth.csv', '--out',
               'tuned.json')
    tuned = read_thresholds('tuned.json')
    assert tuned.value == 1 and tuned.objective == 'f1@50'
    assert .1 < tuned.classes['walk']['on'] < .4
    assert 'f1@50 of all classes: 1.000, with the default thresholds 0.000 ' \
        '(2 videos, 3 events)' in text
    text = run(capsys, 'tune-thresholds', 'scores', 'truth.csv',
               '--objective', 'recall', '--false-alarms', 0)
    assert 'recall of all classes: 1.000' in text
    assert read_thresholds('thresholds.json').about[
        'false_alarms_per_hour'] == 0
