# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
import json

import pytest
from made_videos import FPS, LENGTH, write_opencv

from mmvidattn.datasets.annotations.formats import read_annotations

CSV = '''video,start,end,label
day/a.mp4,0.5,1.0,run
day/a.mp4,0.5,1.0,jump
day/a.mp4,0.75,1.25,run
day/a.mp4,1.5,1.5,run
b.mp4,0.0,,jump
'''


@pytest.fixture
def folder(tmp_path):
    (tmp_path / 'videos/day').mkdir(parents=True)
    write_opencv(tmp_path / 'videos/day/a.mp4')
    write_opencv(tmp_path / 'videos/b.mp4')
    (tmp_path / 'mine.csv').write_text(CSV)
    return tmp_path


def run(run_main, *args):
    with pytest.raises(SystemExit) as stopped:
        run_main('annotations', *map(str, args))
    return stopped.value.code


def test_converts_to_a_folder_of_elan_and_back(folder, run_main, capsys):
    videos = '--videos', folder / 'videos'
    assert run(run_main, folder / 'mine.csv', folder / 'out', *videos,
               '--to', 'elan') == 0
    assert 'note:' in capsys.readouterr().out
    assert run(run_main, folder / 'out', folder / 'back.csv', *videos) == 0
    first, second = ([
        (s.video, s.start, str(s.end), s.labels['action'])
        for s in read_annotations(folder / name).segments]
        for name in ('mine.csv', 'back.csv'))
    # ELAN has no point events.
    wanted = [(video, start, '1.501' if start == 1.5 else end, label)
              for video, start, end, label in first]
    assert sorted(second) == sorted(wanted)


def test_writes_before_a_reader_may_stop(folder, run_main, monkeypatch):
    def closed(*_, **__):
        raise BrokenPipeError

    monkeypatch.setattr('mmvidattn.commands.annotations.echo', closed)
    with pytest.raises((OSError, SystemExit)):
        run_main('annotations', folder / 'mine.csv', folder / 'out.csv')
    assert len(read_annotations(folder / 'out.csv').segments) == 5


def test_reports_what_does_not_fit_the_videos(folder, run_main, capsys):
    duration = LENGTH / FPS
    tasks = [dict(data=dict(video='http://host/day/a.mp4', fps=FPS + 1),
                  annotations=[dict(result=[dict(
                      type='timelinelabels', value=dict(
                          ranges=[dict(start=1, end=100)],
                          timelinelabels=['run']))])]),
             dict(data=dict(video='lost.mp4', fps=FPS))]
    (folder / 'tasks.json').write_text(json.dumps(tasks))
    assert run(run_main, folder / 'tasks.json', '--videos',
               folder / 'videos') == 1
    printed = capsys.readouterr().out
    # Frames may be counted at another rate than that of the video.
    assert ('problem: 1 video missing: lost.mp4\n'
            'problem: 1 segment after the end of its video: day/a.mp4 '
            f'({100 / (FPS + 1):.2f} of {duration:.2f} s)\n') in printed
    assert '1 of 2 videos have no segments' in printed
    (folder / 'split.csv').write_text('video,start,end,label,subset\n'
                                      'a,1,2,x,train\na,4,5,x,tset\n')
    assert run(run_main, folder / 'split.csv') == 0
    assert ('subsets: train (1 video), tset (1 video)\n'
            '1 video in several subsets: a\n') in capsys.readouterr().out
    database = {'database': {'b': dict(duration=9, annotations=[])}}
    (folder / 'b.json').write_text(json.dumps(database))
    assert run(run_main, folder / 'b.json', '--videos', folder / 'videos') == 1
    assert (f'1 video of another length than stated: b.mp4 (9.0 instead '
            f'of {duration:.1f} s)') in capsys.readouterr().out
