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

# Runs that begin within a second have the same name.
pytestmark = pytest.mark.filterwarnings('ignore:.*instance named of small_')


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


@pytest.mark.parametrize(
    'checkpoint, options, error',
    [('none.pth', [], 'no checkpoint file none.pth'),
     ('CHECKPOINT', ['model.backbone.num_layers=2'],
      r'does not fit the model Recognizer3D\(LinearVideoTransformer, .*: '
      r'\d+ of \d+ tensors match. missing \d+: backbone.blocks.1'),
     ('CONFIG', [], 'small.py is not a checkpoint'),
     ('CHECKPOINT', ['test_dataloader.dataset.num_classes=2'],
      'val.txt, line 3: .*label 2 is out of range')],
    ids=['missing', 'of another model', 'no checkpoint', 'label'])
def test_error_names_the_fault(run_main, small_config, small_checkpoint,
                               tmp_path, checkpoint, options, error):
    checkpoint = dict(CHECKPOINT=small_checkpoint, CONFIG=small_config).get(
        checkpoint, checkpoint)
    with pytest.raises(SystemExit, match=f'^mmvidattn test: error: .*{error}'):
        run_main('test.py', small_config, checkpoint, '--work-dir', tmp_path,
                 '--cfg-options', 'model.backbone.num_layers=1', *options)


def test_rejects_another_format_of_predictions(run_main):
    with pytest.raises(SystemExit, match='--dump must end with .pkl'):
        run_main('test.py', 'config.py', 'checkpoint.pth', '--dump', 'x.json')
