# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
import json
import pickle

import cv2
import numpy as np
import pytest
import torch
from mmengine.runner import Runner

import mmvidattn
from mmvidattn.apis import load_config


@pytest.fixture(scope='module')
def tested(run_main, small_config, small_checkpoint, tmp_path_factory):
    cwd = tmp_path_factory.mktemp('test')
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(cwd)
        run_main('test.py', small_config, small_checkpoint, '--dump',
                 'out.pkl', '--show-dir', 'pictures', '--show', '--wait-time',
                 0.001, '--interval', 3)
    return cwd


def test_dumps_the_scores_of_the_model(tested, small_config,
                                       small_checkpoint):
    model = mmvidattn.get_model(small_config, small_checkpoint)
    loader = Runner.build_dataloader(load_config(small_config).test_dataloader)
    with torch.no_grad():
        expected = [sample for batch in loader
                    for sample in model.test_step(batch)]
    got = pickle.loads((tested / 'out.pkl').read_bytes())
    assert len(got) == len(expected) == 7
    for one, two in zip(got, expected):
        torch.testing.assert_close(one['pred_score'], two.pred_score)
        assert one['gt_label'] == two.gt_label
    # Scores must differ, so that a wrong order or weight is detected.
    assert not torch.allclose(got[0]['pred_score'], got[1]['pred_score'],
                              atol=1e-6)


def test_metrics_match_the_scores(tested):
    path, = tested.glob('work_dirs/small/*/*.json')
    result = pickle.loads((tested / 'out.pkl').read_bytes())
    hits = [(one['pred_label'] == one['gt_label']).item() for one in result]
    assert json.loads(path.read_text())['acc/top1'] == np.mean(hits)


def test_shows_every_third_video(tested):
    pictures = sorted(path.name for path in tested.glob('pictures/*'))
    assert pictures == [f'{i:06d}_{i:06d}.png' for i in (0, 3, 6)]
    for name in pictures:
        assert cv2.imread(str(tested / 'pictures' / name)).std() > 1
