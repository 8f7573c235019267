# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
import hashlib
import re

import torch
from safetensors import safe_open

import mmvidattn


def test_publishes_only_weights_and_config(run_main, small_config,
                                           small_checkpoint, tmp_path, capsys):
    saved = torch.load(small_checkpoint, weights_only=True)
    torch.save(
        dict(saved, optimizer=dict(state={}), message_hub={},
             ema_state_dict=saved['state_dict'], exact_resume={}),
        tmp_path / 'epoch_2.pth')
    run_main('publish_model.py', small_config, tmp_path / 'epoch_2.pth',
             '--out-dir', tmp_path / 'out')
    paths = sorted((tmp_path / 'out').iterdir())
    assert {path.suffix for path in paths} == {'.pth', '.safetensors'}
    printed = capsys.readouterr().out
    for path in paths:
        match = re.fullmatch(r'small_\d{8}-([0-9a-f]{8})\.\w+', path.name)
        digest = hashlib.sha256(path.read_bytes()).hexdigest()
        assert digest.startswith(match[1]) and digest in printed
        model = mmvidattn.get_model(small_config, path)
        for name, value in saved['state_dict'].items():
            assert torch.equal(model.state_dict()[name], value)
    pth, safe = sorted(paths, key=lambda path: path.suffix)
    content = torch.load(pth, weights_only=True)
    assert sorted(content) == ['meta', 'state_dict']
    assert sorted(content['meta']) == [
        'cfg', 'dataset_meta', 'mmvidattn_version']
    assert 'LinearVideoTransformer' in content['meta']['cfg']
    assert 'work_dir' not in content['meta']['cfg']
    with safe_open(safe, 'pt') as file:
        assert file.metadata()['cfg'] == content['meta']['cfg']
