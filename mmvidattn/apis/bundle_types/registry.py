# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Permitted content of the config of a bundle, and its registries.

A bundle may come from a stranger. Its config is data: numbers, plain words,
lists and dicts, and the names of the classes listed here. No file, no address
and no dotted name can be written in plain words.

mmengine's registries import any dotted name. While the model or a pipeline of
a bundle is built, the registries of this module replace all of them, also for
the classes that mmaction2 and mmcv build inside.
"""
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import mmengine.registry
from mmaction.registry import MODELS, TRANSFORMS
from mmengine.config import Config
from mmengine.registry import DefaultScope, Registry

from ...registry import OLD_NAMES
from ...utils.printable import printable

RECOGNIZERS = ('FineTunedRecognizer3D', 'OnlineActionDetector',
               'Recognizer2D', 'Recognizer3D')
PREPROCESSORS = ('ActionDataPreprocessor', 'FeatureStreamPreprocessor',
                 'VideoStreamPreprocessor')
BACKBONES = (
    # Of mmvidattn.
    'BNInception', 'DualFormer', 'InflatedBackbone',
    'LinearVideoTransformer', 'MAT', 'MiniROAD', 'OnlineVideoEncoder', 'ResT',
    'TeSTra', 'VJEPA2', 'VJEPA2Predictor', 'ViViT', 'Visformer',
    'VisionTransformerLAPS', 'XViT',
    # Of mmaction2.
    'C2D', 'C3D', 'MViT', 'MobileNetV2', 'MobileNetV2TSM', 'ResNet',
    'ResNet2Plus1d', 'ResNet3d', 'ResNet3dSlowFast', 'ResNet3dSlowOnly',
    'ResNetTIN', 'ResNetTSM', 'SwinTransformer3D', 'TANet', 'TimeSformer',
    'UniFormer', 'VisionTransformer', 'X3D')
HEADS = (
    # Of mmvidattn.
    'AttentiveHead', 'LAPSHead', 'LinearVideoTransformerHead', 'MATHead',
    'OnlineActionHead', 'TokenLabelHead', 'VerbNounHead', 'ViViTHead',
    'XViTHead',
    # Of mmaction2.
    'I3DHead', 'MViTHead', 'SlowFastHead', 'TPNHead', 'TRNHead', 'TSMHead',
    'TSNHead', 'TimeSformerHead', 'X3DHead')
# Parts of networks, and the losses that heads build by default.
LAYERS = (
    # Of mmvidattn.
    'CosFormerAttention', 'DRN', 'GatedDeltaAttention', 'LARAAttention',
    'LinearAttention', 'LinformerAttention', 'MALAAttention',
    'MultiClassCrossEntropyLoss', 'OrthoformerAttention',
    'PerformerAttention', 'PolaFormerAttention', 'RALAAttention',
    'RotaryAttention', 'SoftmaxAttention', 'TokenLabelLoss',
    # Of mmaction2, mmengine, mmcv and torch.
    'BCELossWithLogits', 'BN', 'BN1d', 'BN2d', 'BN3d', 'BaseDataPreprocessor',
    'BaseTransformerLayer', 'Conv', 'Conv1d', 'Conv2d', 'Conv2plus1d',
    'Conv3d', 'CrossEntropyLoss', 'DividedSpatialAttentionWithNorm',
    'DividedTemporalAttentionWithNorm', 'DropPath', 'Dropout', 'FFN',
    'FFNWithNorm', 'GELU', 'GN', 'HSwish', 'LN', 'MultiheadAttention',
    'ReLU', 'ReLU6', 'SiLU', 'Sigmoid', 'SubBatchNorm3D', 'Swish', 'SyncBN',
    'TPN', 'TransformerLayerSequence')
MODEL_NAMES = frozenset(
    (*RECOGNIZERS, *PREPROCESSORS, *BACKBONES, *HEADS, *LAYERS))
# Names that a class of mmaction2 looks up in its table.
INTERNAL_NAMES = frozenset(('AvgConsensus', 'resnet3d'))
# Steps of test pipelines, each with its options; some other options of
# mmaction2's steps import modules or reach other computers.
_OPENS = 'io_backend', 'num_threads'
_SAMPLES = ('clip_len', 'frame_interval', 'num_clips', 'test_mode',
            'twice_sample', 'out_of_bound_opt', 'keep_tail_frames',
            'target_fps')
STEPS: dict[str, tuple[str, ...]] = dict(
    DecordInit=_OPENS, DecordSegmentInit=_OPENS, OpenCVInit=_OPENS,
    PyAVInit=_OPENS, VideoReaderInit=_OPENS,
    DecordDecode=('mode', ), OpenCVDecode=(), PyAVDecode=('mode', ),
    RawFrameDecode=('io_backend', ), VideoReaderDecode=(),
    CenteredSampleFrames=_SAMPLES, CharadesSampleFrames=_SAMPLES,
    SampleFrames=_SAMPLES,
    ScenicSampleFrames=_SAMPLES, SegmentSampleFrames=_SAMPLES,
    SlowFastSampleFrames=_SAMPLES, SpreadSampleFrames=_SAMPLES,
    UniformSample=_SAMPLES,
    AnticipationSampleFrames=('clip_len', 'fps', 'seconds', 'point'),
    UniformSampleFrames=(*_SAMPLES, 'seed'),
    DenseSampleFrames=(*_SAMPLES, 'sample_range', 'num_sample_positions'),
    UntrimmedSampleFrames=('clip_len', 'clip_interval', 'frame_interval'),
    StreamSampleFrames=(), LoadFeatureWindow=(),
    Resize=('scale', 'keep_ratio', 'interpolation'),
    CenterCrop=('crop_size', ), FlowTenCrop=('crop_size', ),
    TenCrop=('crop_size', ), ThreeCrop=('crop_size', ),
    UniformThreeCrop=('crop_size', ),
    FormatShape=('input_format', 'collapse'), PackActionInputs=(),
    PackFeatureInputs=(), PackStreamInputs=())
LISTED = {*MODEL_NAMES, *INTERNAL_NAMES, *STEPS, *OLD_NAMES}
LIBRARIES = 'mmvidattn', 'mmaction', 'mmcv', 'mmengine', 'torch', 'torchvision'
# InflatedBackbone names a network of timm with a dot, and looks it up in
# timm's own list.
WORD = re.compile(r'(timm\.)?[\w+-]*')
# Options that name the storage of files. The other storages import modules or
# reach other computers.
STORAGES = 'io_backend', 'file_client_args', 'backend_args'
# Longest value that an error repeats.
MAX_SHOWN = 60


def check_config(value: Any, name: str, place: str = '') -> None:
    """Check that a config has only permitted content.

    Args:
        value: Config, or a part of it, as plain types.
        name: Name of the bundle, for the error.
        place: Dotted key of the part. Defaults to '', the entire config.

    Raises:
        ValueError: If it has anything else; the error names the key.
    """
    if isinstance(value, Mapping):
        if 'type' in value:
            _check_type(value, place, name)
        for key, item in value.items():
            where = f'{place}.{key}' if place else str(key)
            if key == '_scope_' or (
                    key in STORAGES and (key, item) != ('io_backend', 'disk')):
                _refuse(where, item, name, 'a bundle reads files on the local '
                        'disk only, and only with listed classes')
            check_config(item, name, where)
    elif isinstance(value, (list, tuple)):
        for number, item in enumerate(value):
            check_config(item, name, f'{place}[{number}]')
    elif isinstance(value, str):
        if not WORD.fullmatch(value):
            _refuse(place, value, name, 'a text in a bundle is one plain '
                    'word: no path, no dotted name and no code')
    elif not (value is None or isinstance(value, (int, float))):
        _refuse(place, value, name, 'expected a number, a word, a list or a '
                'dict')


def _check_type(part: Mapping[str, Any], place: str, name: str) -> None:
    kind, place = part['type'], f'{place}.'.lstrip('.')
    if not isinstance(kind, str) or not (kind in INTERNAL_NAMES or any(
            find_class(each, kind) for each in (MODELS, TRANSFORMS))):
        _refuse(f'{place}type', kind, name, 'a bundle may contain only listed '
                'classes of mmvidattn and mmaction2, by name. For a class of '
                'yours, use the config and the checkpoint instead of the '
                'bundle, or import its module first in Python')
    unknown = {*part} - {'type', *STEPS.get(OLD_NAMES.get(kind, kind), part)}
    if unknown:
        key = min(unknown, key=str)
        _refuse(f'{place}{key}', part[key], name,
                f'{kind} in a bundle may have '
                f'{", ".join(STEPS[kind]) or "no options"}')


def _refuse(place: str, value: Any, name: str, reason: str) -> None:
    shown = repr(value)
    shown = shown[:MAX_SHOWN] + '...' * (len(shown) > MAX_SHOWN)
    raise ValueError(printable(
        f'{name} is refused: {place}={shown}: {reason}'))


def find_class(registry: Registry, name: str) -> type | None:
    """Return a class of MODELS or TRANSFORMS, if a bundle may contain it.

    Besides the listed ones, these are the classes that a user's own module
    has registered. No other module is imported for a name.
    """
    name = OLD_NAMES.get(name, name)
    node: Registry | None = registry
    while node is not None:
        node.import_from_location()
        if name in node.module_dict:
            found = node.module_dict[name]
            listed = MODEL_NAMES if registry is MODELS else STEPS
            is_own = found.__module__.partition('.')[0] not in LIBRARIES
            return found if name in listed or is_own else None
        node = node.parent
    return None


# mmengine imports the module `registry` of a scope.
SCOPE = __package__


class BundleConfig(Config):
    """Config of a bundle."""


class BundleRegistry(Registry):
    """Registry of the classes of one kind that a bundle may contain."""

    def get(self, key: str) -> type:
        """Return a class by its name, which a bundle may contain."""
        sources = dict(model=MODELS, transform=TRANSFORMS)
        found = self.name in sources and find_class(sources[self.name], key)
        if not found:
            raise ValueError(f'a bundle may not contain the {self.name} '
                             f'{key!r}')
        return found


REGISTRIES = [
    BundleRegistry(registry.name, parent=registry, scope=SCOPE)
    for registry in {id(one): one for one in vars(
        mmengine.registry).values() if isinstance(one, Registry)}.values()]


@contextmanager
def types_of(cfg: Config) -> Iterator[None]:
    """Look up types as ``cfg`` may: those of a bundle are restricted."""
    scope = SCOPE if isinstance(cfg, BundleConfig) else cfg.get(
        'default_scope', 'mmaction')
    with DefaultScope.overwrite_default_scope(scope):
        yield
