# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Read bytes written by flax 0.12.8 (msgpack_serialize), and convert them."""
import struct

import msgpack
import pytest
import torch

from mmvidattn.commands import main
from mmvidattn.convert import convert
from mmvidattn.convert.flax_checkpoint import load_flax_file
from mmvidattn.utils.checkpoint import load_state_dict_file

# {'optimizer': {'target': {'a': {'kernel': float32 [[0, 1, 2], [3, 4, 5]]},
# 'b': int32 [1, -2]}}, 'global_step': numpy's int64 300, 'x': {'half':
# bfloat16 [1.5, -2]}, 'name': 'vivit', 'none': None, 'flag': True, 'list':
# {'0': 1, '1': -5, '2': 70000}}
TREE = bytes.fromhex(
    '87a4666c6167c3ab676c6f62616c5f73746570c712039390a5696e743634c4082c010000'
    '00000000a46c69737483a13001a131fba132ce00011170a46e616d65a57669766974a46e'
    '6f6e65c0a96f7074696d697a657281a674617267657482a16181a66b65726e656cc72601'
    '93920203a7666c6f61743332c418000000000000803f0000004000004040000080400000'
    'a040a162c71301939102a5696e743332c40801000000feffffffa17881a468616c66c712'
    '01939102a862666c6f61743136c404c03f00c0')


def _load(tmp_path, data):
    path = tmp_path / 'checkpoint'
    path.write_bytes(data)
    return load_flax_file(path)


def test_reads_arrays_by_path(tmp_path):
    got = _load(tmp_path, TREE)
    want = {
        'global_step': torch.tensor(300),
        'optimizer/target/a/kernel': torch.arange(6.).view(2, 3),
        'optimizer/target/b': torch.tensor([1, -2], dtype=torch.int32),
        'x/half': torch.tensor([1.5, -2], dtype=torch.bfloat16),
    }
    assert got.keys() == want.keys()
    for name, value in want.items():
        assert got[name].dtype == value.dtype, name
        assert torch.equal(got[name], value), name


@pytest.mark.parametrize('data, message', [
    (TREE[:-3], 'incomplete'),
    (b'\x93\1\2\3', 'got a list'),
    (TREE.replace(b'\xa7float32', b'\xa7complex'), 'got complex'),
    (TREE.replace(b'\x92\2\3', b'\x92\2\4'), 'shape'),
    (b'\x80\4\x95\0', 'extra data'),
], ids=['cut', 'list', 'type', 'shape', 'pickle'])
def test_rejects_invalid_data(tmp_path, data, message):
    with pytest.raises(ValueError, match=f'not a flax checkpoint.*{message}'):
        _load(tmp_path, data)


@pytest.mark.parametrize('root, state', [
    ('optimizer/target/', 'optimizer/state/step'), ('params/', 'opt_state/0')])
def test_finds_parameters_next_to_optimizer_state(root, state):
    out = convert('vivit_scenic', {
        f'{root}Transformer/encoder_norm/scale': torch.randn(4),
        state: torch.zeros(()), 'global_step': torch.zeros(())})
    assert out.keys() == {'backbone.encoder.norm.weight'}


def test_command_reads_flax_files(tmp_path):
    values = struct.pack('<4d', *range(4))
    tree = msgpack.ExtType(1, msgpack.packb(((4, ), 'float64', values)))
    for key in 'scale', 'encoder_norm', 'Transformer', 'target', 'optimizer':
        tree = {key: tree}
    (tmp_path / 'checkpoint').write_bytes(msgpack.packb(tree))
    main(['convert', 'vivit_scenic', str(tmp_path / 'checkpoint'),
          str(tmp_path / 'vivit.pth')])
    result = load_state_dict_file(tmp_path / 'vivit.pth')
    assert result.keys() == {'backbone.encoder.norm.weight'}
    assert torch.equal(*result.values(), torch.arange(4.).double())
