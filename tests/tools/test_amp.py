# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Option --amp of the commands that compute scores and features.

States of online networks: ``tests/online/test_contract.py``.
"""
import json
import pickle
import shutil

import numpy as np
import pytest
import torch
from live_fixtures import write_clip, write_tsn

from mmvidattn.online.frame_scores import read_frame_scores


@pytest.fixture
def check_amp(run_main):
    """Check that results differ as bfloat16 explains, and are float32.

    Results in a folder do not mix with those of the other precision.
    """
    def check(read, *words, folder=None):
        run_main(*words)
        full = np.asarray(read())
        if folder:
            with pytest.raises(SystemExit, match='amp was'):
                run_main(*words, '--amp')
            shutil.rmtree(folder)
        run_main(*words, '--amp')
        low = np.asarray(read())
        assert low.shape == full.shape and low.dtype == full.dtype
        assert np.isfinite(low).all()
        assert 1e-6 < np.abs(low - full).max() / np.abs(full).max() < .05

    return check


def test_predict(check_amp, video, small_config, small_checkpoint, tmp_path):
    out = tmp_path / 'out'

    def read():
        found = json.loads((out / f'{video.stem}.json').read_text())
        return [p['score'] for p in found['predictions']]

    check_amp(read, 'predict', video, small_config, small_checkpoint, '--json',
              out, folder=out)


def test_test(check_amp, small_config, small_checkpoint, tmp_path):
    out = tmp_path / 'out.pkl'
    check_amp(lambda: [each['pred_score'].numpy() for each in pickle.loads(
        out.read_bytes())], 'test.py', small_config, small_checkpoint,
        '--dump', out, '--work-dir', tmp_path, '--cfg-options',
        'test_dataloader.dataset.indices=1')


def test_extract_features(check_amp, video, tmp_path):
    out = tmp_path / 'out'
    check_amp(lambda: np.load(out / f'{video.stem}.npy'), 'extract-features',
              video, out, write_tsn(tmp_path / 'tsn.py', False), folder=out)


@pytest.mark.parametrize('model', ['files', 'clip_files'])
def test_stream(check_amp, tmp_path, model, request):
    out, clip = tmp_path / 'scores', write_clip(tmp_path / 'clip.mp4', 24)
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
