# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
import json

import pytest
import torch

import mmvidattn
from mmvidattn.export import load_program, read_metadata

CONFIG = 'vivit_tiny_motion'
OPTIONS = '--cfg-options', 'model.backbone.num_layers=1'


@pytest.fixture(scope='module')
def checkpoint(tmp_path_factory):
    model = mmvidattn.get_model(
        CONFIG, cfg_options={'model.backbone.num_layers': 1})
    path = tmp_path_factory.mktemp('checkpoint') / 'model.pth'
    classes = [f'motion {i}' for i in range(8)]
    torch.save(dict(state_dict=model.state_dict(),
                    meta=dict(dataset_meta=dict(classes=classes))), path)
    return path


def test_exports_a_checkpoint(run_main, capsys, checkpoint, tmp_path):
    out = tmp_path / 'new/model.pt2'
    run_main('export.py', CONFIG, checkpoint, out, '--normalize', *OPTIONS)
    printed = capsys.readouterr().out
    assert 'logits of batch 5: differs by ' in printed
    assert 'largest difference: ' in printed and f'{out}: ' in printed
    metadata = read_metadata(out)
    assert json.loads(metadata['classes'])[7] == 'motion 7'
    assert metadata['config'] == CONFIG
    clips = torch.zeros(2, 3, 8, 64, 64, dtype=torch.uint8)
    assert load_program(out)(clips)[0].shape == (2, 8)
    with pytest.raises(SystemExit, match='exists; replace it with --force'):
        run_main('export.py', CONFIG, checkpoint, out, *OPTIONS)


@pytest.mark.parametrize('name, more, message', [
    ('model.pth', (), 'must end with .pt2 or .onnx'),
    ('model.pt2', ('--dynamic', 'size'), 'pos_embed')])
def test_errors_are_one_line(run_main, checkpoint, tmp_path, name, more,
                             message):
    with pytest.raises(SystemExit, match=f'export: error: .*{message}'):
        run_main('export.py', CONFIG, checkpoint, tmp_path / name, *more,
                 *OPTIONS)
    assert not [*tmp_path.iterdir()]
