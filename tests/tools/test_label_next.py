# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
import csv
import json

import numpy as np
import pytest
from live_fixtures import clip_files, write_clip  # noqa: F401

from mmvidattn.cli.label_next import main
from mmvidattn.datasets.annotations.formats import read_annotations
from mmvidattn.online.frame_scores import FrameScores, ScoredVideos
from mmvidattn.utils.video_readers import open_video


@pytest.fixture(scope='module')
def videos(tmp_path_factory):
    folder = tmp_path_factory.mktemp('videos')
    (folder / 'b').mkdir()
    write_clip(folder / 'a.mp4', 12 * 100)
    write_clip(folder / 'b/a.mp4', 12 * 20)
    (folder / 'notes.txt').write_text('no video')
    return folder


def rows(path):
    with open(path, encoding='utf-8', newline='') as file:
        return list(csv.DictReader(file))


def test_writes_minutes_and_tasks(tmp_path, videos, clip_files,  # noqa: F811
                                  capsys):
    out = tmp_path / 'next'
    main([str(videos), *map(str, clip_files), '--out', str(out),
          '--number', '2', '--per-video', '1', '--device', 'cpu'])
    minutes = rows(out / 'minutes.csv')
    # One of each video: a part of the long one, and all of the short one.
    assert sorted((row['video'], float(row['end']) - float(row['start']))
                  for row in minutes) == [
        (str(videos / 'a.mp4'), pytest.approx(60., abs=21)),
        (str(videos / 'b/a.mp4'), pytest.approx(20., abs=.6))]
    usefulness = [float(row['uncertainty']) + float(row['disagreement'])
                  for row in minutes]
    assert usefulness == sorted(usefulness, reverse=True)
    for row in minutes:
        check_frames(videos, out / 'videos' / row['minute'], row)
    # Both task files have the same events, inside of the minutes.
    lengths = {row['minute']: float(row['end']) - float(row['start'])
               for row in minutes}
    tasks = json.loads((out / 'tasks.json').read_text())
    assert len(tasks) == 2
    found = [sorted((s.video, s.labels['action'], round(s.start, 1))
                    for s in read_annotations(
                        out / name, fps=12).segments)
             for name in ('tasks.json', 'tasks.csv')]
    assert found[0] and [x[:2] for x in found[0]] == [
        x[:2] for x in found[1]]
    for segment in read_annotations(out / 'tasks.csv').segments:
        assert 0 <= segment.start < segment.end <= (
            lengths[segment.video] + 1e-6)
        assert segment.score is not None
    assert '01_a.mp4: ' in capsys.readouterr().out


def check_frames(videos, path, row):
    """Check that a clip has the frames of its minute."""
    clip, whole = open_video(path), open_video(row['video'])
    first = round(float(row['start']) * 12)
    assert len(clip) == round(float(row['end']) * 12) - first
    for i in 0, len(clip) // 2, len(clip) - 1:
        difference = clip[i].astype(float) - whole[first + i]
        assert np.abs(difference).mean() < 6, i


def test_stored_scores_replace_the_model(tmp_path, videos):
    random = np.random.default_rng(0)
    scores = np.zeros((100, 3), np.float32)
    # One event, then a minute of changing scores.
    scores[4:8, 1] = .9
    scores[60:, 2] = random.random(40)
    ScoredVideos(['background', 'run', 'jump'], {0}, {
        'a': FrameScores(1., scores),
        'rtsp://door/x': FrameScores(1., scores[60:])}).write(
            tmp_path / 'scores')
    out = tmp_path / 'next'
    main([str(videos / 'a.mp4'), '--scores', str(tmp_path / 'scores'),
          '--out', str(out)])
    found = {(row['video'], float(row['start']), float(row['end'])): row
             for row in rows(out / 'minutes.csv')}
    assert {*found} == {
        ('rtsp://door/x', 0, 40), ('a', 60, 100), ('a', 0, 60)}
    # A camera has no video.
    assert found['rtsp://door/x', 0, 40]['minute'] == ''
    last = found['a', 0, 60]
    assert last['minute'] == '03_a.mp4'
    check_frames(videos, out / 'videos/03_a.mp4',
                 dict(last, video=videos / 'a.mp4'))
    events = read_annotations(out / 'tasks.csv').segments
    assert [(one.start, one.end) for one in events
            if one.video == '03_a.mp4'] == [(4., 8.)]
    # Without videos, the minutes are only listed.
    main(['--scores', str(tmp_path / 'scores'), '--out',
          str(tmp_path / 'other'), '--number', '1'])
    assert [path.name for path in (tmp_path / 'other').iterdir()] == [
        'minutes.csv']


def test_unreadable_videos_are_left_out(tmp_path, videos,
                                        clip_files, capsys):  # noqa: F811
    broken = tmp_path / 'broken.mp4'
    broken.write_bytes(b'no video')
    out = tmp_path / 'next'
    main([str(broken), str(videos / 'b'), *map(str, clip_files), '--out',
          str(out), '--device', 'cpu'])
    assert 'left out: cannot open' in capsys.readouterr().err
    assert [row['minute'] for row in rows(out / 'minutes.csv')] == [
        '01_a.mp4']


@pytest.mark.parametrize('case, error', [
    ('full', 'must be a new or empty folder'),
    ('empty', 'no videos in'), ('missing', 'must be a video file or a folder'),
    ('broken', 'no video could be read')])
def test_errors_are_one_line(tmp_path, clip_files, case,  # noqa: F811
                             error):
    out = tmp_path / 'out'
    source = tmp_path / 'source'
    if case == 'full':
        out.mkdir()
        (out / 'x').write_text('')
    if case == 'broken':
        source = tmp_path / 'source.mp4'
        source.write_text('no video')
    elif case != 'missing':
        source.mkdir()
    with pytest.raises(SystemExit, match=error) as info:
        main([str(source), *map(str, clip_files), '--out', str(out)])
    assert '\n' not in str(info.value)
