# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Live detection with MiniROAD and MAT."""
import numpy as np
import pytest
import torch
from live_fixtures import CLASSES, ROOT

from mmvidattn.live import FeatureStreamModel, StreamRun


@pytest.mark.parametrize('name', ['miniroad', 'mat'])
def test_scores_match_the_whole_video(name, files, clip, tmp_path):
    path = tmp_path / 'detector.py'
    # The rates in the config match the extracted features.
    path.write_text(f'''
_base_ = ['{ROOT}/configs/{name}_tiny_synthetic.py']
model = dict(
    backbone=dict(in_channels=dict(_delete_=True, rgb=96), embed_dims=16),
    cls_head=dict(num_classes={len(CLASSES)}, in_channels=16))
test_dataloader = dict(dataset=dict(metainfo=dict(classes={CLASSES})))
online = dict(
    extractors=dict(rgb=dict(
        config='linear_ff_tiny_motion',
        checkpoint='{files[1].parent}/recognizer.pth',
        cfg_options={{'model.backbone.num_layers': 1}})))
''')
    torch.manual_seed(0)
    live, rows = FeatureStreamModel(path, None), []
    step = live._pool.session.step
    take = step.take

    def record(projected, *args):
        rows.append(projected['row'])
        take(projected, *args)

    step.take = record
    scores = np.stack([one.scores for one in StreamRun(live, clip)])
    assert len(scores) == len(rows) == 28
    np.testing.assert_allclose(scores.sum(axis=1), 1, atol=1e-5)
    if name != 'mat':
        model = live.model
        with torch.no_grad():
            y = model.cls_head(model.backbone.mix(torch.stack(rows, dim=1)))
            want = model.cls_head.probabilities(y)['action'][0]
        np.testing.assert_allclose(scores, want.numpy(), atol=1e-5)
