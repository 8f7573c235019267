# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Option --amp of the commands that compute scores and features.

States of online networks: ``tests/online/test_contract.py``.
"""
import json
import pickle

import numpy as np
import pytest
import torch
from live_fixtures import write_tsn

from mmvidattn.apis.labels import Prediction
from mmvidattn.online.frame_scores import read_frame_scores


@pytest.fixture
def check_amp(run_main):
    """Check that results differ as bfloat16 explains, and are float32."""
    def check(read, *words):
        run_main(*words)
        full = np.asarray(read())
        run_main(*words, '--amp')
        low = np.asarray(read())
        assert low.shape == full.shape and low.dtype == full.dtype
        assert np.isfinite(low).all()
        assert 1e-6 < np.abs(low - full).max() / np.abs(full).max() < .05

    return check


@pytest.mark.parametrize('options', [
    ('--json', 'out.json'), ('--json', 'folder'),
    ('--windows', .4, '--json-lines', 'out.jsonl')])
def test_predict(run_main, check_amp, motion_dir, small_config,
                 small_checkpoint, tmp_path, monkeypatch, options):
    videos = [motion_dir / f'val/{i:06d}.mp4' for i in range(2)]
    words = 'predict', *videos, small_config, small_checkpoint, *options
    monkeypatch.chdir(tmp_path)
    # Of the best five of eight classes, the rounded order could differ.
    monkeypatch.setattr(
        'mmvidattn.apis.video_classifier.top_predictions',
        lambda scores, labels, topk: [Prediction(i, labels[i], score)
                                      for i, score in enumerate(
                                          scores.tolist())])

    def read():
        text = ''.join(path.read_text() for path in sorted(
            tmp_path.rglob('*.json*')) if path.stem != 'options')
        found = json.loads(text) if options[-1] == 'out.json' else [
            json.loads(line) for line in text.splitlines()]
        return [[p['score'] for p in each['predictions']] for each in found]

    if options[-1] != 'folder':
        check_amp(read, *words)
        return
    run_main(*words)
    with pytest.raises(SystemExit, match='amp was'):
        run_main(*words, '--amp')
    full = read()
    for path in tmp_path.glob('folder/*'):
        path.unlink()
    run_main(*words, '--amp')
    assert 1e-6 < np.abs(np.subtract(read(), full)).max() < .05


def test_test(check_amp, small_config, small_checkpoint, tmp_path):
    out = tmp_path / 'out.pkl'
    check_amp(lambda: [each['pred_score'].numpy() for each in pickle.loads(
        out.read_bytes())], 'test.py', small_config, small_checkpoint,
        '--dump', out, '--work-dir', tmp_path)


def test_extract_features(run_main, video, tmp_path):
    config = write_tsn(tmp_path / 'tsn.py', False)
    args = 'extract-features', video
    for amp in [], ['--amp']:
        run_main(*args, tmp_path / f'{len(amp)}', config, *amp)
    full, low = (np.load(tmp_path / f'{i}/{video.stem}.npy') for i in (0, 1))
    assert low.dtype == np.float32 and np.isfinite(low).all()
    assert 1e-6 < np.abs(low - full).max() / np.abs(full).max() < .05
    with pytest.raises(SystemExit, match='amp was'):
        run_main(*args, tmp_path / '1', config)


@pytest.mark.parametrize('model', ['files', 'clip_files'])
def test_stream(check_amp, clip, tmp_path, model, request):
    out = tmp_path / 'scores'
    check_amp(lambda: read_frame_scores(out).videos[str(clip)].scores,
              'stream', clip, *request.getfixturevalue(model), '--scores', out)


def test_float32_where_bfloat16_is_slow(
        run_main, video, small_config, small_checkpoint, monkeypatch, capsys):
    monkeypatch.delenv('MMVIDATTN_BFLOAT16')
    monkeypatch.setattr('mmvidattn.utils.half_precision.'
                        'has_bfloat16_instructions', lambda: False)
    args = 'predict', video, small_config, small_checkpoint
    run_main(*args)
    full = capsys.readouterr()
    run_main(*args, '--amp')
    low = capsys.readouterr()
    assert low.out == full.out
    assert low.err.count('MMVIDATTN_BFLOAT16=force') == 1
    assert not torch.is_autocast_enabled('cpu')
