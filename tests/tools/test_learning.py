# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Small models learn generated sets, by the commands of the pages."""
import json
from pathlib import Path
from statistics import mean

import decord
import numpy as np
import pytest
import torch

import mmvidattn
from mmvidattn.live import EventDetector
from tools.data.online.make_pixels import FPS

pytestmark = pytest.mark.slow
CAUSAL = 'linear_ff_causal_tiny_synthetic'


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def learn(run_main):
    """Train a config; return a function that tests it with options."""
    def run(config, *options):
        changes = ['--cfg-options', *options] * bool(options)
        run_main('train', config, '--work-dir', 'run', *changes)
        checkpoint = max(Path('run').glob('best_*.pth'), default=Path(
            'run/last_checkpoint').read_text())

        def test(*more):
            run_main('test', config, checkpoint, '--work-dir', 'test',
                     '--cfg-options', *options, *more)
            path = max(Path('test').glob('2*/2*.json'),
                       key=lambda path: path.stat().st_mtime_ns)
            return json.loads(path.read_text())

        return test, str(checkpoint)

    return run


@pytest.mark.parametrize('config, model', [
    ('vivit_tiny_motion', 'joint'),
    ('vivit_tiny_fact_encoder_motion', 'fact_encoder'),
    ('vivit_tiny_motion', 'fact_attention'),
    ('vivit_tiny_motion', 'fact_dot')])
def test_vivit_learns_the_motion_set(run_main, learn, config, model):
    run_main('data/motion/make_motion.py', 'set')
    test, _ = learn(config, 'data_root=set', f'model.backbone.model={model}')
    assert test()['acc/top1'] >= 0.9


@pytest.mark.parametrize('name', ['miniroad', 'mat'])
def test_detectors_learn_classes_of_current_features(run_main, learn, name):
    run_main('data/online/make_synthetic.py', 'set', '--train', 6, '--val', 1,
             '--steps', 600, '--noise', .25)
    test, _ = learn(
        f'{name}_tiny_synthetic', 'data_root=set', 'train_cfg.max_epochs=6',
        'train_cfg.val_interval=9', 'train_dataloader.batch_size=8',
        'default_hooks.checkpoint.save_best=None')
    result = test()
    # Chance is about 0.1.
    assert mean(value for key, value in result.items()
                if key.startswith('online/AP_dense_now')) > 0.8, result


@torch.no_grad()
def scores_of(model, video):
    """Score all frames of a file in one pass, ``(T, K)``."""
    reader = decord.VideoReader(video)
    frames = torch.from_numpy(reader.get_batch(range(len(reader))).asnumpy())
    frames = model.data_preprocessor.normalize(frames.permute(3, 0, 1, 2))
    x, _ = model.backbone.forward_causal(dict(frames=frames[None]))
    return model.cls_head(x)['action'].softmax(-1)[0].numpy()


def test_causal_network_learns_cues_of_all_distances_and_streams_events(
        run_main, learn):
    """From generated videos to events, as in docs/causal.md."""
    data = Path('data/online_pixels')
    run_main('data/online/make_pixels.py', data)
    test, checkpoint = learn(CAUSAL)
    for kind in 'near', 'mid', 'far':
        assert test(f'test_dataloader.dataset.ann_file=val_{kind}.csv')[
            'online/mAP_stream'] > .9
    # Stream a file, and compare with one pass over all of its frames.
    video = f'{data}/videos/val_far_0000.mp4'
    run_main('stream', video, CAUSAL, checkpoint, '--events', 'events.jsonl')
    scores = scores_of(mmvidattn.get_model(CAUSAL, checkpoint), video)
    classes = (data / 'classes.txt').read_text().split()
    detector = EventDetector(classes, {0}, on=.5, off=.3, min_duration=.2)
    expected = []
    for i, row in enumerate(scores):
        expected += detector.update(i / FPS, (i + 1) / FPS, row)
    expected += detector.finish(len(scores) / FPS)
    got = [json.loads(line) for line in open('events.jsonl')]
    for one, event in zip(got, expected, strict=True):
        assert one == pytest.approx(event, abs=1e-5)
    # The events have the classes and times of the video's actions.
    truth = json.loads((data / 'events.json').read_text())['val_far_0000']
    begins = np.array([one['start'] for one in truth]) / FPS
    starts = [event for event in got if event['event'] == 'start']
    assert len(starts) >= .8 * len(truth)
    for event in starts:
        near = truth[np.abs(begins - event['start']).argmin()]
        assert event['class'] == f'{near["kind"]}_{near["label"]}'
