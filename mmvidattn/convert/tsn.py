# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Convert weights of TSN, whose features LSTR and TeSTra use.

Supported are the names in the code of TSN's and SSN's authors, in TSN's
network files, and in ports, which write ``_`` for Caffe's ``/``:

https://github.com/yjxiong/temporal-segment-networks
https://github.com/yjxiong/tsn-pytorch
https://github.com/yjxiong/action-detection
https://github.com/shuangshuangguo/caffe2pytorch-tsn
https://github.com/Cadene/pretrained-models.pytorch
https://github.com/mit-han-lab/temporal-shift-module
"""
import re

from torch import Tensor

from .rename import StartWeights, missing_tensor, rename

_PREFIX = (r'^(?:module\.)?(?:base_model\.)?', '')
_CLASSIFIER = re.compile(r'(?:fc|new_fc|fc_action|last_linear)\.(weight|bias)')
# SSN's classifiers, which have more inputs than the features of a frame.
_DROPPED = re.compile(r'(?:activity|completeness|regressor|test)_fc\..+')
_PARAMETERS = r'weight|bias|running_mean|running_var|num_batches_tracked'

_INCEPTION = (
    _PREFIX,
    # Caffe's separator.
    (r'/', '_'),
    (rf'_bn\.({_PARAMETERS})$', r'.norm.\1'),
    (r'^((?:conv\d|inception_\d\w)_\w+)\.(weight|bias)$', r'\1.conv.\2'),
    (r'^conv1_7x7_s2\.', 'conv1.'),
    (r'^conv2_3x3', 'conv2'),
    (r'^(inception_\d[a-e])_', r'\1.branches.'),
    (r'\.((?:double_)?3x3)_reduce\.', r'.\1.reduce.'),
    (r'\.3x3\.(conv|norm)\.', r'.3x3.conv.\1.'),
    (r'\.double_3x3_([12])\.', r'.double_3x3.conv\1.'),
    (r'\.pool_proj\.', '.pool.proj.'),
)
_OUR_INCEPTION = re.compile(
    r'(?:conv1|conv2|conv2_reduce|'
    r'inception_(?:3[a-c]|4[a-e]|5[ab])\.branches\.(?:1x1|'
    r'3x3\.(?:reduce|conv)|double_3x3\.(?:reduce|conv1|conv2)|pool\.proj))'
    rf'\.(?:conv\.(?:weight|bias)|norm\.(?:{_PARAMETERS}))')

_RESNET = (
    _PREFIX,
    (r'^(layer\d\.\d+\.)?conv(\d)\.weight$', r'\1conv\2.conv.weight'),
    (r'^(layer\d\.\d+\.)?bn(\d)\.', r'\1conv\2.bn.'),
    (r'\.downsample\.0\.', '.downsample.conv.'),
    (r'\.downsample\.1\.', '.downsample.bn.'),
)
_MMACTION_RESNET = re.compile(
    r'(?:conv1|layer\d\.\d+\.(?:conv\d|downsample))'
    rf'\.(?:conv\.weight|bn\.(?:{_PARAMETERS}))')


def bn_inception(state_dict: dict[str, Tensor]) -> StartWeights:
    """Convert BN-Inception of TSN, SSN or ImageNet.

    Early files have batch normalization's tensors as [1, C]; they become [C].
    The classifiers of SSN are left out.

    Returns:
        Tensors of a ``Recognizer2D`` with ``BNInception`` and ``TSNHead``.
        For an SSN, tensors of the head are missing.
    """
    return _convert(state_dict, _INCEPTION, _OUR_INCEPTION, 'BN-Inception')


def tsn_resnet(state_dict: dict[str, Tensor]) -> StartWeights:
    """Convert TSN on ResNet, of MIT's or TSN's authors, to mmaction2's TSN.

    A ResNet of torchvision or timm is also accepted. A TSM, whose
    convolutions shift, is rejected, because it is another model.

    Returns:
        Tensors of a ``Recognizer2D`` with mmaction2's ``ResNet`` and
        ``TSNHead``.
    """
    return _convert(state_dict, _RESNET, _MMACTION_RESNET,
                    'a TSN on a ResNet')


def _convert(state_dict: dict[str, Tensor], rules: tuple, ours: re.Pattern,
             model: str) -> StartWeights:
    out = {}
    account = dict(used=[], folded=[], dropped=[])
    for name, value in state_dict.items():
        new = rename(name, rules)
        plain = rename(name, (_PREFIX, ))
        if _DROPPED.fullmatch(plain):
            account['dropped'].append(name)
            continue
        if classifier := _CLASSIFIER.fullmatch(plain):
            new = f'cls_head.fc_cls.{classifier[1]}'
        elif ours.fullmatch(new):
            if re.search(r'\.(?:norm|bn)\.', new):
                # num_batches_tracked is a scalar.
                value = value.flatten() if value.dim() else value
            new = f'backbone.{new}'
        else:
            raise ValueError(f'{name} is not a tensor of {model}')
        if new in out:
            raise ValueError(f'{name} is a second tensor for {new}')
        out[new] = value
        account['used'].append(name)
    if 'backbone.conv1.conv.weight' not in out:
        raise missing_tensor(model, 'first convolution', state_dict)
    return StartWeights(out, account)
