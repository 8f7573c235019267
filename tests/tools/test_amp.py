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

import mmvidattn
from mmvidattn.apis.labels import Prediction
from mmvidattn.online.frame_scores import read_frame_scores


def check_rounded(low, full, tolerance=.05):
    """Check that results differ, but not by more than bfloat16 explains."""
    low, full = np.asarray(low), np.asarray(full)
    assert low.shape == full.shape and np.isfinite(low).all()
    error = np.abs(low - full).max() / np.abs(full).max()
    assert 1e-6 < error < tolerance


@pytest.fixture(scope='module')
def videos(motion_dir):
    return [motion_dir / f'val/{i:06d}.mp4' for i in range(3)]


@pytest.fixture(scope='module')
def soft_checkpoint(small_config, small_checkpoint, tmp_path_factory):
    """The checkpoint with probabilities that are not 0 or 1."""
    model = mmvidattn.get_model(small_config, small_checkpoint)
    torch.manual_seed(0)
    with torch.no_grad():
        logits = model(torch.randn(1, 1, 3, 8, 64, 64), stage='head')
        for p in model.cls_head.fc_cls.parameters():
            p /= logits.std()
    path = tmp_path_factory.mktemp('soft') / 'soft.pth'
    torch.save(dict(state_dict=model.state_dict()), path)
    return path


def scores_of(predictions):
    return [[p['score'] for p in sorted(each['predictions'],
                                        key=lambda p: p['index'])]
            for each in predictions]


@pytest.mark.parametrize('options', [
    ('--json', 'out.json'), ('--json', 'folder'),
    ('--windows', .4, '--json-lines', 'out.jsonl')])
def test_predict(run_main, videos, small_config, soft_checkpoint, tmp_path,
                 monkeypatch, options):
    found = []
    for amp in [], ['--amp']:
        (folder := tmp_path / f'{len(amp)}').mkdir()
        monkeypatch.chdir(folder)
        # With five of eight classes, the rounded order could differ.
        monkeypatch.setattr('mmvidattn.apis.video_classifier.top_predictions',
                            all_predictions)
        run_main('predict.py', *videos, small_config, soft_checkpoint,
                 *options, *amp)
        text = ''.join(path.read_text() for path in sorted(
            folder.rglob('*.json*')) if path.stem != 'options')
        found.append(scores_of(
            json.loads(text) if options[-1] == 'out.json' else
            [json.loads(line) for line in text.splitlines()]))
    check_rounded(found[1], found[0])
    if options[-1] == 'folder':
        with pytest.raises(SystemExit, match='amp was'):
            run_main('predict.py', *videos, small_config, soft_checkpoint,
                     *options)


def all_predictions(probabilities, labels, topk):
    return [Prediction(i, labels[i], score)
            for i, score in enumerate(probabilities.tolist())]


def test_test(run_main, small_config, small_checkpoint, tmp_path):
    found = []
    for amp in [], ['--amp']:
        run_main('test.py', small_config, small_checkpoint, '--dump',
                 tmp_path / 'out.pkl', '--work-dir', tmp_path, *amp)
        found.append([each['pred_score'].numpy() for each in pickle.loads(
            (tmp_path / 'out.pkl').read_bytes())])
    check_rounded(found[1], found[0])


def test_extract_features(run_main, videos, tmp_path):
    config = write_tsn(tmp_path / 'tsn.py', False)
    args = 'extract-features', videos[0]
    for amp in [], ['--amp']:
        run_main(*args, tmp_path / f'{len(amp)}', config, *amp)
    low, full = (np.load(tmp_path / f'{i}' / f'{videos[0].stem}.npy')
                 for i in (1, 0))
    assert low.dtype == np.float32
    check_rounded(low, full)
    with pytest.raises(SystemExit, match='amp was'):
        run_main(*args, tmp_path / '1', config)


@pytest.mark.parametrize('model', ['files', 'clip_files'])
def test_stream(run_main, clip, tmp_path, model, request):
    found = []
    for amp in [], ['--amp']:
        scores = tmp_path / f'{len(amp)}'
        run_main('stream.py', clip, *request.getfixturevalue(model),
                 '--scores', scores, *amp)
        found.append(read_frame_scores(scores).videos[str(clip)].scores)
    check_rounded(found[1], found[0])


def test_float32_where_bfloat16_is_slow(
        run_main, videos, small_config, soft_checkpoint, monkeypatch, capsys):
    monkeypatch.delenv('MMVIDATTN_BFLOAT16')
    monkeypatch.setattr('mmvidattn.utils.half_precision.has_bfloat16_units',
                        lambda: False)
    args = 'predict.py', *videos, small_config, soft_checkpoint
    run_main(*args)
    full = capsys.readouterr()
    run_main(*args, '--amp')
    low = capsys.readouterr()
    assert low.out == full.out
    assert low.err.count('MMVIDATTN_BFLOAT16=force') == 1
    assert not torch.is_autocast_enabled('cpu')
