# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""`mmvidattn finetune --stream`, from annotations to a running detector."""
import csv
import json
import re
import signal
import subprocess
import sys
import time

import cv2
import pytest
from helpers import read_scalars

from mmvidattn.apis.bundle_file import load_bundle
from mmvidattn.commands import main
from mmvidattn.online.event_thresholds import read_thresholds
from tools.data.online.make_events import CLASSES, Recipe, make_events

FILES = {'best.pth', 'best.safetensors', 'bundle', 'config.py', 'curves.png',
         'data', 'finetune.json', 'metrics.json', 'predictions.csv', 'run',
         'scores', 'thresholds.json', 'timelines.png'}


def options_of(events, out, *more):
    return [str(word) for word in (
        events / 'annotations.csv', '--videos', events / 'videos', '--stream',
        '--work-dir', out, '--workers', 0, '--quick', *more)]


@pytest.mark.slow
def test_resumes_after_a_kill_and_streams(tmp_path):
    events, out = tmp_path / 'set', tmp_path / 'out'
    # Ten videos of two minutes.
    make_events(events, recipe=Recipe(seconds=120, contrast=1, noise=4))
    # The minutes only choose the size of the images, also on a busy machine.
    command = [sys.executable, '-m', 'mmvidattn', 'finetune', *options_of(
        events, out, '--model', 'pixels', '--epochs', 40, '--minutes', 60)]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL,
                               stderr=subprocess.DEVNULL)
    while not [*out.glob('run/epoch_*.pth')]:
        assert process.poll() is None
        time.sleep(0.1)
    process.send_signal(signal.SIGKILL)
    process.wait()
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert 'resuming with its lists' in done.stdout
    assert {path.name for path in out.glob('[!.]*')} == FILES
    epochs = [log['epoch'] for log in read_scalars(out / 'run')
              if 'loss' in log]
    assert epochs == sorted(epochs) and epochs[-1] == 40
    metrics = json.loads((out / 'metrics.json').read_text())
    assert metrics['split'] == 'test' and metrics['videos'] == 2
    assert {one['name'] for one in metrics['tuned']['classes']} <= {*CLASSES}
    for name in 'curves.png', 'timelines.png':
        assert cv2.imread(str(out / name)).std() > 1, name
    assert re.search(r'^all +\d+ +\d', done.stdout, re.M)
    assert metrics['tuned']['F1@50'] > .5
    tuned = read_thresholds(out / 'thresholds.json').classes
    online = load_bundle(out / 'bundle').config.online
    assert online.events.thresholds.to_dict() == tuned
    # The live detector finds the predicted events.
    main([*map(str, ('stream', events / 'videos/day_04.mp4', out / 'bundle',
                     '--events', out / 'e.jsonl'))])
    live = [json.loads(line) for line in open(out / 'e.jsonl')]
    live = [(one['class'], one['start'], one['end']) for one in live
            if one['event'] == 'end']
    with open(out / 'predictions.csv') as file:
        found = [(row['label'], float(row['start']), float(row['end']))
                 for row in csv.DictReader(file)
                 if row['video'] == 'day_04.mp4']
    assert len(found) == len(live) > 0
    for one, other in zip(sorted(found), sorted(live)):
        assert one[0] == other[0]
        assert one[1:] == pytest.approx(other[1:], abs=1e-3)
    # The same command repeats only the results.
    done = subprocess.run(command, capture_output=True, text=True)
    assert 'the training is complete' in done.stdout
    assert json.loads((out / 'metrics.json').read_text()) == metrics


def test_dry_run_prints_the_config(tmp_path, capfd):
    out = tmp_path / 'out'
    make_events(tmp_path / 'set', 5, recipe=Recipe(seconds=60, side=36))
    main(['finetune', *options_of(tmp_path / 'set', out, '--dry-run')])
    printed = capfd.readouterr().out
    assert not out.exists()
    assert 'train: 3 videos; val: 1 video; test: 1 video' in printed
    compile(printed.partition('\n\n')[2], 'config.py', 'exec')
