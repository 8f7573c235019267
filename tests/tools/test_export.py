# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
import json

import pytest
import torch

import mmvidattn
from mmvidattn.apis import save_bundle
from mmvidattn.export import load_program, read_metadata


@pytest.fixture
def bundle(tmp_path):
    config, path = tmp_path / 'small.py', tmp_path / 'model.pth'
    config.write_text("_base_ = 'mmvidattn::vivit_tiny_motion.py'\n"
                      'model = dict(backbone=dict(num_layers=1))\n')
    torch.save(dict(state_dict=mmvidattn.get_model(config).state_dict()), path)
    return save_bundle(tmp_path / 'bundle', config, path,
                       [f'motion {i}' for i in range(8)])


def test_exports_a_bundle(run_main, capsys, bundle, tmp_path, monkeypatch):
    # mmengine warns if types of a bundle are looked up in another scope.
    monkeypatch.setattr('mmengine.registry.utils.print_log',
                        lambda text, **_: pytest.fail(text))
    out = tmp_path / 'new/model.pt2'
    run_main('export.py', bundle, out, '--normalize')
    printed = capsys.readouterr().out
    assert 'logits of batch 5: differs by ' in printed
    assert 'largest difference: ' in printed and f'{out}: ' in printed
    assert json.loads(read_metadata(out)['classes'])[7] == 'motion 7'
    clips = torch.zeros(2, 3, 8, 64, 64, dtype=torch.uint8)
    assert load_program(out)(clips)[0].shape == (2, 8)
    with pytest.raises(SystemExit, match='exists; replace it with --force'):
        run_main('export.py', bundle, out)
