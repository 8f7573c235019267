# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
import torch
from mmaction.registry import MODELS

from mmvidattn.convert import convert
from mmvidattn.convert.rename import rename

# From our names to those of MIT's files.
RULES = (
    (r'conv(\d)\.conv\.', r'conv\1.'), (r'conv(\d)\.bn\.', r'bn\1.'),
    (r'sample\.conv\.', 'sample.0.'), (r'sample\.bn\.', 'sample.1.'),
    ('^backbone', 'module.base_model'), ('cls_head.fc_cls', 'module.new_fc'))


def test_converts_mits_tsn_to_mmaction2():
    model = MODELS.build(dict(
        type='Recognizer2D', backbone=dict(type='ResNet', depth=50),
        cls_head=dict(type='TSNHead', num_classes=5, in_channels=2048)))
    state = {name: torch.rand(value.shape)
             for name, value in model.state_dict().items()}
    saved = {rename(name, RULES): value for name, value in state.items()}
    assert {f'module.base_model.{name}' for name in (
        'conv1.weight', 'bn1.running_var', 'layer1.0.conv3.weight',
        'layer4.2.bn3.num_batches_tracked', 'layer2.0.downsample.0.weight',
        'layer2.0.downsample.1.bias')} <= saved.keys()
    result = convert('tsn_resnet', saved)
    assert result.keys() == state.keys()
    assert all(torch.equal(result[name], state[name]) for name in state)
