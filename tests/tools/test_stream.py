# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
import json
import os
import re
from pathlib import Path
from types import SimpleNamespace

import cv2
import numpy as np
import pytest
import torch
from helpers import sigterm
from live_fixtures import Hook, write_clip

from mmvidattn.commands import make_parser, stream
from mmvidattn.evaluation.events import detect_events, tune_thresholds
from mmvidattn.live import load_live_model
from mmvidattn.online.frame_scores import read_frame_scores

# Thresholds that the weak scores of the detector reach.
LOW = '--on', '0.26', '--off', '0.1', '--min-duration', '0'


def events_of(path='events.jsonl'):
    return [json.loads(line) for line in open(path, encoding='utf-8')]


def num_frames(path):
    return cv2.VideoCapture(path).get(cv2.CAP_PROP_FRAME_COUNT)


@pytest.mark.parametrize('model, options, lines', [
    ('files', [], ['28 steps, 0 dropped, 0 missing', 'flow ']),
    ('clip_files', ['--stride', 1, '--on', '0.2', '--off', '0.1'], [
        'the last 2.00 s (24 frames) every 1.00 s (12 frames); ',
        '7 steps, 0 dropped, 0 missing'])], ids=['features', 'clips'])
def test_video_plot_and_events(run_main, request, clip, capsys, model,
                               options, lines):
    run_main('stream.py', clip, *request.getfixturevalue(model), *options,
             '--out', 'out.mp4', '--plot', 'plot.png', '--events',
             'events.jsonl')
    out = capsys.readouterr().out
    for text in *lines, *(f'{stage} ' for stage in (
            'decode', 'features', 'head', 'total')):
        assert text in out
    # Frames of a file wait for the steps before them.
    assert 'lag' not in out
    assert ('flow ' in out) == (model == 'files')
    assert num_frames('out.mp4') == 84
    assert cv2.VideoCapture('out.mp4').get(cv2.CAP_PROP_FPS) == 12
    assert cv2.imread('plot.png').shape[1] == 1440
    events = events_of()
    assert events
    assert all(map(out.__contains__, map(stream.describe_event, events)))


def test_flow_network_keeps_the_method_of_the_config(clip, monkeypatch):
    seen = []
    monkeypatch.setattr('mmvidattn.live.load_live_model', lambda *_, **given: (
        seen.append(given['extractors']['flow']) or 1 / 0))
    for options in [], ['--flow-method', 'tvl1']:
        with pytest.raises(ZeroDivisionError):
            stream.make_runs(make_parser('stream').parse_args([
                str(clip), 'testra_thumos14', 'a.pth', '--flow', 'flow.py',
                '-', *options, '--cfg-options',
                'online.extractors.flow.flow=farneback']))
    assert seen == [dict(config='flow.py', checkpoint=None, flow=method)
                    for method in ('farneback', 'tvl1')]


def test_tuned_thresholds_of_scores_apply_live(run_main, files, clip, capsys):
    run_main('stream.py', clip, *files, '--scores', 'scores', '--on', '0.99')
    out = capsys.readouterr().out
    assert 'no events. Highest score' in out and 'started' not in out
    peaks = dict(re.findall(r'(\w+) (0\.\d\d) of 0\.99', out))
    assert {*peaks} == {'jump', 'run', 'swim'}
    assert max(map(float, peaks.values())) > .25
    scored = read_frame_scores('scores')
    rate, scores = scored.videos[str(clip)]
    assert (rate, scores.shape, scored.ignore) == (4., (28, 4), {0})
    np.testing.assert_allclose(scores.sum(axis=1), 1, rtol=1e-5)
    # The scores of the model hardly differ, so choose any events as truth.
    wanted = detect_events(
        scored.videos, scored.classes, scored.ignore, thresholds=dict(
            swim=dict(on=.8, off=.5, smoothing=.5, min_duration=.5)))
    tuned = tune_thresholds(scored.videos, wanted, scored.classes,
                            scored.ignore)
    assert tuned.value > .6 and {
        one.labels['action'] for one in wanted} >= {'swim'}
    tuned.write('thresholds.json')
    run_main('stream.py', clip, *files, '--thresholds', 'thresholds.json',
             '--events', 'events.jsonl')
    offline = detect_events(scored.videos, scored.classes, scored.ignore,
                            thresholds=tuned.classes)
    assert [(e['class'], e['start'], e['end']) for e in events_of()
            if e['event'] == 'end'] == [
                (one.labels['action'], one.start, one.end)
                for one in offline]
    # Also from Python, by file or as a dict.
    for thresholds in 'thresholds.json', tuned.classes:
        model = load_live_model(*files, thresholds=thresholds)
        assert model.new_event_detector().tuned == tuned.classes


def test_service(run_main, files, capsys):
    """Use a state, a clip per action, and a webhook."""
    clip = write_clip(Path('short.mp4').resolve(), 36)
    options = [*LOW, '--events', 'events.jsonl', '--state', 'state',
               '--segments', 'clips', '--segment-margin', 9, 0, '--webhook']
    run_main('stream.py', clip, *files, *options,
             'http://u:secret@127.0.0.1:9/')
    out = capsys.readouterr().out
    assert '12 steps' in out and 'secret' not in out
    assert out.count('http://127.0.0.1:9/: ConnectError') == 1
    events = events_of()
    assert f'{len(events)} items lost by http://127.0.0.1:9/' in out
    assert sorted(os.listdir('clips')) == sorted(
        f'{e["start_id"]:06d}.mp4' for e in events if e['event'] == 'end'
    ) != []
    # From the start of the video to the end of the action, at 12 frames/s.
    for e in events:
        if e['event'] == 'end':
            assert num_frames(f'clips/{e["start_id"]:06d}.mp4') == (
                pytest.approx(12 * e['end'], abs=1))
    hook = Hook()
    run_main('stream.py', clip, *files, *options, f'http://{hook.host}/')
    assert f'{clip} had ended at 3.00 s' in capsys.readouterr().out
    assert events_of() == events
    os.unlink('state')
    run_main('stream.py', clip, *files, *options, f'http://{hook.host}/')
    assert hook.events == [dict(event, source=str(clip)) for event in events]
    hook.close()


def test_output_that_cannot_be_written_fails(run_main, clip):
    with pytest.raises(SystemExit, match='error: /proc/x.mp4 is incomplete; '
                       '/proc/scores is incomplete$'):
        run_main('stream.py', clip, '--out', '/proc/x.mp4', '--scores',
                 '/proc/scores', '--plot', 'plot.png')
    assert Path('plot.png').exists()


def test_broken_video_keeps_its_outputs(run_main, clip_files, broken_clip,
                                        clip, capsys):
    bad = Path('x\x1b[2J\x9b.mp4').absolute()
    bad.symlink_to(broken_clip)
    with pytest.raises(SystemExit, match=re.escape(
            r'\x1b[2J\x9b.mp4 breaks off: ') + '.* of 84') as end:
        run_main('stream.py', bad, clip, *clip_files, '--out',
                 'out.mp4', '--plot', 'p.png', '--events', 'events.jsonl',
                 '--stride', 1, '--on', '0.2', '--off', '0.1')
    # The other source continues.
    assert 0 < num_frames('out_1.mp4') < 84 == num_frames('out_2.mp4')
    assert cv2.imread('p_1.png') is not None
    assert cv2.imread('p_2.png') is not None
    assert Path('events_1.jsonl').exists()
    out = capsys.readouterr().out
    assert '7 steps' in out and not {'\x1b', '\x9b'} & {*out, *end.value.code}
    assert re.search(f'^{clip}: .* started at', out, re.MULTILINE)


def test_signal_keeps_the_outputs(run_main, files, camera, capsys):
    events = Path('events.jsonl')
    with sigterm(lambda: events.exists() and events.read_text()):
        run_main('stream.py', camera.url, *files, *LOW, '--out', 'out.mp4',
                 '--events', events)
    out, error = capsys.readouterr()
    assert 'started' in out and 'stopped' in out
    assert 'secret' not in out + error
    assert events.read_text().endswith('}\n')
    assert cv2.VideoCapture('out.mp4').read()[0]


def test_losses_of_a_source_are_logged(capsys):
    source = SimpleNamespace(name='rtsp://door', status='running')
    statuses = iter(['lost, reconnecting', 'lost, reconnecting', 'running',
                     'failed: gone'])

    def is_alive():
        source.status = next(statuses, '')
        return source.status != ''

    worker = SimpleNamespace(source_run=SimpleNamespace(source=source),
                             is_alive=is_alive)
    stream.wait_for([worker], False)
    assert capsys.readouterr().out == (
        'rtsp://door: lost, reconnecting\nrtsp://door: running\n')


def test_recognizer_of_the_command_line(run_main, files, clip, capsys):
    """The option replaces the feature network of the config."""
    recognizer = files[1].with_name('recognizer.pth')
    with pytest.raises(SystemExit, match='does not fit the model'):
        run_main('stream.py', clip, *files, '--rgb', 'vivit_tiny_motion',
                 recognizer)
    run_main('stream.py', clip, *files, '--rgb', 'linear_ff_tiny_motion',
             recognizer)
    assert '28 steps' in capsys.readouterr().out


def test_small_models_compute_on_one_thread(monkeypatch, run_main, clip):
    numbers = []
    monkeypatch.setattr(torch, 'set_num_threads', numbers.append)
    for size, extractors, environ in (
            (9, {}, dict(OMP_NUM_THREADS='2')), (10**6, {}, {}),
            (9, {'rgb': 1}, {}), (9, {}, {})):
        monkeypatch.setattr(os, 'environ', environ)
        stream.limit_threads(SimpleNamespace(
            model=torch.nn.Linear(1, size), extractors=extractors))
    assert numbers == [1]
    run_main('stream', clip)
    assert numbers == [1, 1]
