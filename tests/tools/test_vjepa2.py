# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""A tiny V-JEPA 2 from own videos to a file and a stream."""
import json

import numpy as np
import pytest
import torch
from mmaction.registry import MODELS

from mmvidattn import get_model
from mmvidattn.apis import load_config
from mmvidattn.commands import main
from mmvidattn.export import load_program, read_metadata

CONFIG = '''
_base_ = 'mmvidattn::vjepa2_tiny_motion.py'
model = dict(backbone=dict(num_layers=1))
'''


def run(*words):
    main([*map(str, words)])


@pytest.fixture(scope='module')
def probe(make_classes, tmp_path_factory):
    """Train a probe on six videos of two classes; return its folder."""
    folder = tmp_path_factory.mktemp('p')
    make_classes(folder / 'videos', ['left', 'up'])
    (folder / 'tiny.py').write_text(CONFIG)
    torch.manual_seed(0)
    torch.save(dict(state_dict=get_model(folder / 'tiny.py').state_dict()),
               folder / 'start.pth')
    run('finetune', folder / 'videos', '--model', folder / 'tiny.py',
        '--weights',
        folder / 'start.pth', '--freeze', 'backbone', '--epochs', 1,
        '--workers', 0, '--work-dir', folder / 'out')
    return folder


def test_probe_predicts_own_classes(probe, video, capsys):
    start, trained = (torch.load(path, weights_only=True)['state_dict']
                      for path in (probe / 'start.pth',
                                   probe / 'out/best.pth'))
    changed = {name.split('.')[0] for name, value in trained.items()
               if value.shape == start[name].shape
               and not torch.equal(value, start[name])}
    assert changed == {'cls_head'}
    run('predict', video, probe / 'out/bundle')
    assert {'left', 'up'} <= {*capsys.readouterr().out.split()}


def test_bundle_is_exported(probe, capsys, tmp_path, monkeypatch):
    # mmengine warns if types of a bundle are looked up in another scope.
    monkeypatch.setattr('mmengine.registry.utils.print_log',
                        lambda text, **_: pytest.fail(text))
    out = tmp_path / 'new/model.pt2'
    run('export', probe / 'out/bundle', out, '--normalize')
    printed = capsys.readouterr().out
    assert 'logits of batch 5: differs by ' in printed
    assert 'largest difference: ' in printed and f'{out}: ' in printed
    assert json.loads(read_metadata(out)['classes']) == ['left', 'up']
    clips = torch.zeros(2, 3, 8, 64, 64, dtype=torch.uint8)
    assert load_program(out)(clips)[0].shape == (2, 2)
    with pytest.raises(SystemExit, match='exists; replace it with --force'):
        run('export', probe / 'out/bundle', out)


def test_testra_runs_on_its_features(probe, video, tmp_path, capsys):
    weights = probe / 'out/best.pth'
    run('extract-features', video, tmp_path / 'rgb', probe / 'tiny.py',
        '--checkpoint', weights)
    features = np.load(tmp_path / 'rgb/000000.npy')
    assert features.shape[1] == 96 and np.isfinite(features).all()
    torch.manual_seed(0)
    detector = MODELS.build(load_config('testra_tiny_videos').model)
    torch.save(dict(state_dict=detector.state_dict()), tmp_path / 't.pth')
    run('stream', video, 'testra_tiny_videos', tmp_path / 't.pth', '--rgb',
        probe / 'tiny.py', weights)
    assert f'{len(features)} steps' in capsys.readouterr().out
