# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Invalid input of the Python API: one line that names the fault."""
from pathlib import Path

import numpy as np
import pytest
import torch

import mmvidattn
from mmvidattn.apis import find_config, read_labels, save_bundle

NAME = 'linear_ff_tiny_motion'
ABLATIONS = find_config(NAME).parent / 'testra/ablations'
HERE = Path(__file__)
FRAMES = np.zeros((4, 8, 8, 3), np.uint8)
LAYOUT = r'uint8 \[T, H, W, 3\], got '
model = mmvidattn.get_model


@pytest.fixture(scope='module')
def classifier():
    return mmvidattn.VideoClassifier(
        model(NAME, cfg_options={'model.backbone.num_layers': 1}))


@pytest.fixture(scope='module')
def checkpoint(classifier, tmp_path_factory):
    path = tmp_path_factory.mktemp('checkpoint') / 'model.pth'
    torch.save(dict(state_dict=classifier.model.state_dict()), path)
    return path


@pytest.mark.parametrize('call, error', [
    (lambda c: c(FRAMES.astype(np.float32)), LAYOUT + r'float32 \[4, 8, 8,'),
    (lambda c: c(np.zeros((2, 3, 8, 8), np.uint8)), LAYOUT + 'uint8'),
    (lambda c: c(torch.from_numpy(FRAMES[0])), LAYOUT + r'uint8 \[8, 8, 3\]'),
    (lambda c: c(FRAMES[:0]), LAYOUT + r'uint8 \[0, 8, 8, 3\]'),
    (lambda c: c(FRAMES, topk=0), '^topk must .* got 0'),
    (lambda c: c(FRAMES, batch_size=0), '^batch_size must .* got 0'),
    (lambda c: c.each(FRAMES, fps=float('nan')), '^fps must .* got nan'),
    (lambda c: c.windows(FRAMES, 0), 'seconds must be a positive number'),
    (lambda c: c.windows(FRAMES, 1, -1), 'stride must be a positive number'),
    (lambda c: next(c.windows(FRAMES, 1)), 'need fps'),
    (lambda c: c(__file__, fps=10), f'fps=10 .*{HERE.name}'),
    (lambda c: c(__file__), r'cannot read .*test_rejected.py: .+$'),
    (lambda c: c(HERE.with_name('none')), 'video .*none does not'),
    (lambda c: next(c.windows('none.mp4', 1)), 'video none.mp4 does not'),
    (lambda c: c('.'), 'no videos in the folder'),
    (lambda c: c('rtsp://me:secret@x/a'), 'rtsp://x/a does.*mmvidattn stre'),
    (lambda c: next(c.windows('97', 1)), '97 does not.* mmvidattn stream'),
    (lambda c: c('http://u:secret@[::1/x'), r'http://\[::1/x: .*IPv6'),
    (lambda c: read_labels('none.txt'), 'labels file none.txt'),
    # Models and checkpoints.
    (lambda c: mmvidattn.VideoClassifier('linear_ff_causal_tiny_synthetic'),
     'in streams: use mmvidattn stream, predict --segments'),
    (lambda c: model('linear_ff_tiny_motoin'),
     f"no model 'linear_ff_tiny_motoin'; did you mean {NAME}"),
    (lambda c: model('linear_ff_table05_rleu'), 'did you mean .*05_relu'),
    (lambda c: model('zzz'), "no model 'zzz'; mmvidattn.list_models"),
    (lambda c: model('none.py'), 'no config file none.py'),
    (lambda c: model(ABLATIONS / 'testra.py'),
     'a table .* give the name of a row: .*testra_table04_laplace'),
    (lambda c: model('best.pth', NAME), 'best.pth is a checkpoint, where a c'),
    (lambda c: model(NAME, 'linear_ff_ssv2'),
     'linear_ff_ssv2 is a config, where a checkpoint'),
    (lambda c: model('linear_ff_ssv2', 'default'),
     f'needs one of the models {NAME}, got'),
    (lambda c: model(NAME, None, 'cpu', {'model.backbone.num_layrs': 1}),
     "LinearVideoTransformer.*'num_layrs'"),
    # Sliding windows.
    (lambda c: mmvidattn.SlidingClassifier(c.model, fps=0), 'fps must be a p'),
    (lambda c: mmvidattn.SlidingClassifier(c.model, fps=12, seconds=-1),
     'seconds must be a positive number'),
    (lambda c: mmvidattn.SlidingClassifier(
        c.model, fps=12, seconds=16 / 12, stride=2),
     'stride .*1.33333 s, got 2'),
    (lambda c: mmvidattn.SlidingClassifier(c.model, fps=12),
     'seconds must be set'),
    (lambda c: mmvidattn.SlidingClassifier(
        model('testra_tiny_synthetic'), fps=12), 'needs a Recognizer3D')])
def test_rejected_inputs(classifier, call, error):
    with pytest.raises((ValueError, OSError, TypeError), match=error) as info:
        call(classifier)
    assert '\n' not in str(info.value) and 'secret' not in str(info.value)


@pytest.mark.parametrize('options, error', [
    (dict(thresholds=dict(low=1)), 'thresholds .*on, .*low'),
    (dict(labels=['a', 'b']), 'labels .*8 classes, got 2')])
def test_bundle_is_not_written(classifier, checkpoint, tmp_path, options,
                               error):
    with pytest.raises(ValueError, match=error):
        save_bundle(tmp_path / 'b', classifier.model.cfg, checkpoint,
                    **options)
    assert not [*tmp_path.iterdir()]
