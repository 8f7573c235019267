# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
from pathlib import Path

import cv2
import numpy as np
import pytest
import torch

import mmvidattn

ROOT = Path(__file__).resolve().parents[2]
TOOL = 'analysis/frame_scores.py'


@pytest.fixture(scope='module')
def video(motion_dir):
    return motion_dir / 'val/000000.mp4'


@pytest.fixture(scope='module')
def config(motion_dir, tmp_path_factory):
    path = tmp_path_factory.mktemp('laps') / 'small_laps.py'
    path.write_text(f'''
_base_ = ['{ROOT}/configs/laps_tiny_motion.py']
model = dict(
    backbone=dict(arch=dict(
        stem_channels=8, embed_dims=16, depths=(1, 1, 1), num_heads=2)),
    cls_head=dict(in_channels=32))
dataset = dict(
    data_root='{motion_dir}',
    metainfo=dict(classes='{motion_dir}/label_map.txt'))
test_dataloader = dict(dataset=dataset)
''')
    return path


@pytest.fixture(scope='module')
def checkpoint(config, tmp_path_factory):
    torch.manual_seed(0)
    model = mmvidattn.get_model(config)
    torch.nn.init.normal_(model.cls_head.fc_cls.weight, std=3.)
    path = tmp_path_factory.mktemp('checkpoint') / 'laps.pth'
    torch.save(dict(state_dict=model.state_dict()), path)
    return path


def test_draws_two_models_and_their_scores(run_main, config, checkpoint, video,
                                           tmp_path, capsys):
    out = tmp_path / 'scores.png'
    run_main(TOOL, video, '--model', config, '--model',
             f'{config}:{checkpoint}', '--device', 'cpu', '--out', out)
    assert cv2.imread(str(out)).std() > 5
    lines = capsys.readouterr().out.splitlines()[-2:]
    assert lines[0].startswith('small_laps: ')
    for line in lines:
        scores = [float(x) for x in line.split('frames ')[1].split()]
        assert len(scores) == 8 and 0 <= min(scores) <= max(scores) <= 1
    # The score of the clip is its prediction, and frames differ.
    model = mmvidattn.get_model(config, checkpoint)
    model.cfg.test_dataloader.dataset.pipeline = model.cfg.val_pipeline
    best = mmvidattn.VideoClassifier(model)(video).predictions[0]
    assert lines[1].startswith(
        f'small_laps, laps: {best.label} {best.score:.3f}; frames ')
    assert np.std(scores) > 0
