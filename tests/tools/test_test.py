# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
import json
import pickle

import numpy as np
import torch
from mmengine.runner import Runner

import mmvidattn
from mmvidattn.apis import load_config


def test_scores_and_metrics_are_those_of_the_model(
        run_main, small_config, small_checkpoint, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    run_main('test.py', small_config, small_checkpoint, '--dump', 'out.pkl')
    model = mmvidattn.get_model(small_config, small_checkpoint)
    loader = Runner.build_dataloader(load_config(small_config).test_dataloader)
    with torch.no_grad():
        expected = [sample for batch in loader
                    for sample in model.test_step(batch)]
    got = pickle.loads((tmp_path / 'out.pkl').read_bytes())
    assert len(got) == len(expected) == 7
    for one, two in zip(got, expected):
        torch.testing.assert_close(one['pred_score'], two.pred_score)
        assert one['gt_label'] == two.gt_label
    # Scores must differ, so that a wrong order or weight is detected.
    assert not torch.allclose(got[0]['pred_score'], got[1]['pred_score'],
                              atol=1e-6)
    hits = [(one['pred_label'] == one['gt_label']).item() for one in got]
    path, = tmp_path.glob('work_dirs/small/*/*.json')
    assert json.loads(path.read_text())['acc/top1'] == np.mean(hits)
