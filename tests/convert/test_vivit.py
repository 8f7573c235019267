# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
import runpy
import sys
from pathlib import Path

import pytest
import torch

from mmvidattn.convert import convert
from mmvidattn.utils.checkpoint import load_state_dict_file

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize('root, state', [
    ('optimizer/target/', 'optimizer/state/step'), ('params/', 'opt_state/0')])
def test_finds_parameters_next_to_optimizer_state(root, state):
    tree = {'Transformer/encoder_norm/scale': torch.randn(4)}
    out = convert('vivit_scenic', {
        **{f'{root}{path}': value for path, value in tree.items()},
        state: torch.zeros(()), 'global_step': torch.zeros(())})
    assert out.keys() == {'backbone.encoder.norm.weight'}


def _packed(tree):
    """Serialize a tree of float32 tensors like flax."""

    def text(value):
        return b'\xd9' + bytes([len(value)]) + value.encode()

    if isinstance(tree, dict):
        return b'\xde' + len(tree).to_bytes(2, 'big') + b''.join(
            text(key) + _packed(value) for key, value in tree.items())
    data = tree.contiguous().numpy().tobytes()
    body = b'\x93' + bytes([0x90 + tree.dim(), *tree.shape]) + text(
        'float32') + b'\xc6' + len(data).to_bytes(4, 'big') + data
    return b'\xc9' + len(body).to_bytes(4, 'big') + b'\x01' + body


def test_command_reads_flax_files(tmp_path, monkeypatch):
    scale = torch.randn(4)
    tree = dict(Transformer=dict(encoder_norm=dict(scale=scale)))
    src, dst = tmp_path / 'checkpoint', tmp_path / 'vivit.pth'
    src.write_bytes(_packed(dict(optimizer=dict(target=tree))))
    monkeypatch.setattr(
        sys, 'argv', ['convert.py', 'vivit_scenic', str(src), str(dst)])
    monkeypatch.setattr(sys, 'path', [*sys.path])
    runpy.run_path(str(ROOT / 'tools/convert.py'), run_name='__main__')
    result = load_state_dict_file(dst)
    assert result.keys() == {'backbone.encoder.norm.weight'}
    assert torch.equal(*result.values(), scale)
