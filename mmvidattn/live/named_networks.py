# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Networks, selected by name, that are not mmaction2 recognizers.

* ``timm://NAME``: ``timm.create_model(NAME)``, without its classifier.
* ``hf://OWNER/MODEL@REVISION``: a timm or transformers model from the Hugging
  Face Hub.
* ``MODULE:CALLABLE``: a network that is imported from the module, or that a
  function of the module returns.
"""
import importlib
import json
import math
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from torch import Tensor, nn

from ..utils.checkpoint import (
    load_checkpoint,
    load_state_dict_file,
    load_tensors,
)
from ..utils.hub import SCHEME, hub_model

TIMM = 'timm://'
PRETRAINED = 'pretrained'
_CALLABLE = re.compile(r'[A-Za-z_][\w.]*:[A-Za-z_][\w.]*')
# Pillow's numbers for interpolations, as in preprocessor_config.json.
_RESAMPLE = {0: 'nearest', 2: 'bilinear', 3: 'bicubic'}


@dataclass
class Network:
    """Network with the known properties of its input.

    Attributes:
        model: Network from images or clips to features.
        name: Name for errors.
        image_input: Known arguments of :class:`ImageInput`.
        clip_len: Number of images in a clip, if known.
    """
    model: nn.Module
    name: str
    image_input: dict[str, Any] = field(default_factory=dict)
    clip_len: int | None = None


def is_network(config: Any) -> bool:
    """Return True for a network or its name, but not for a config."""
    if isinstance(config, nn.Module):
        return True
    text = str(config)
    return text.startswith((TIMM, SCHEME)) or bool(_CALLABLE.fullmatch(text))


def find_network(config: str | nn.Module,
                 checkpoint: str | Path | None) -> Network:
    """Build a network.

    Args:
        config: Network, or its name in a format listed at the top of this
            file.
        checkpoint: Weights: a file, or ``hf://OWNER/MODEL@REVISION``. For
            timm also 'pretrained', which downloads timm's weights for this
            name. None keeps the network's weights, which are random for a
            timm model. Must be None for a model from ``hf://``, which includes
            weights.

    Raises:
        ValueError: If the network does not exist, or the weights do not match.
        ImportError: If timm or transformers is needed and not installed.
    """
    if isinstance(config, nn.Module):
        network = Network(config, type(config).__name__)
    elif config.startswith(TIMM):
        return _timm(config, checkpoint)
    elif config.startswith(SCHEME):
        if checkpoint is not None:
            raise ValueError(f'{config} has its own weights: checkpoint must '
                             f'be None, got {str(checkpoint)!r}')
        return _hub(config)
    else:
        network = Network(_call(config), config)
    if checkpoint is not None:
        load_checkpoint(network.model, checkpoint)
    return network


def _call(name: str) -> nn.Module:
    module, _, path = name.partition(':')
    try:
        target = importlib.import_module(module)
        for part in path.split('.'):
            target = getattr(target, part)
    except (ImportError, AttributeError) as error:
        raise ValueError(f'{name} must be MODULE:CALLABLE that can be '
                         f'imported: {error}') from error
    model = target
    if callable(target) and not isinstance(target, nn.Module):
        model = target()
    if not isinstance(model, nn.Module):
        raise ValueError(f'{name} must return an nn.Module, got a '
                         f'{type(model).__name__}')
    return model


def _import(package: str, name: str) -> Any:
    try:
        return importlib.import_module(package)
    except ImportError as error:
        raise ImportError(f'{name} needs {package}: pip install {package}: '
                          f'{error}') from error


def _timm(name: str, checkpoint: str | Path | None) -> Network:
    timm = _import('timm', name)
    short = name.removeprefix(TIMM)
    if not timm.is_model(short.partition('.')[0]):
        raise ValueError(f'{name}: timm has no model of this name; see '
                         'timm.list_models()')
    model = timm.create_model(
        short, pretrained=checkpoint == PRETRAINED, num_classes=0)
    if checkpoint not in (None, PRETRAINED):
        _load_timm(model, load_state_dict_file(checkpoint),
                   model.pretrained_cfg, str(checkpoint))
    return Network(model, name, timm_input(model.pretrained_cfg, name))


def _load_timm(model: nn.Module, tensors: dict[str, Tensor],
               cfg: dict[str, Any], source: str) -> None:
    """Load timm weights, except for the classifier.

    Raises:
        ValueError: If they do not fit the model.
    """
    layers = cfg.get('classifier') or ()
    layers = (layers, ) if isinstance(layers, str) else layers
    heads = tuple(f'{layer}.' for layer in layers)
    kept = {k: v for k, v in tensors.items() if not k.startswith(heads)}
    load_tensors(model, kept, source)


def timm_input(cfg: dict[str, Any], name: str) -> dict[str, Any]:
    """Return the arguments of :class:`ImageInput` for timm's evaluation.

    Args:
        cfg: ``pretrained_cfg`` of the model. Missing entries are left out.
        name: Name of the model, for errors.
    """
    settings = dict(takes='frames', value_range=1.)
    for key in 'mean', 'std':
        if cfg.get(key) is not None:
            settings[key] = tuple(cfg[key])
    if cfg.get('interpolation'):
        settings['interpolation'] = cfg['interpolation']
    if cfg.get('input_size'):
        height, width = cfg['input_size'][-2:]
        fraction = cfg.get('crop_pct') or 1.
        mode = cfg.get('crop_mode') or 'center'
        scaled = [math.floor(side / fraction) for side in (height, width)]
        if mode == 'squash':
            settings['resize'] = tuple(scaled)
        elif mode == 'center' and height == width:
            settings['resize'] = scaled[0]
        else:
            raise ValueError(
                f'crop_mode={mode!r} of {name} is not supported for '
                f'{height} x {width}: pass resize and crop in input')
        settings['crop'] = (height, width)
    return settings


def _hub(name: str) -> Network:
    folder = hub_model(name)
    config = json.loads((folder / 'config.json').read_text('utf-8'))
    if 'architecture' in config:
        timm = _import('timm', name)
        cfg = config.get('pretrained_cfg', {})
        model = timm.create_model(config['architecture'], pretrained=False,
                                  num_classes=0,
                                  **config.get('model_args', {}))
        _load_timm(model, load_state_dict_file(folder / 'model.safetensors'),
                   cfg, name)
        return Network(model, name, timm_input(cfg, name))
    transformers = _import('transformers', name)
    model, loading = transformers.AutoModel.from_pretrained(
        folder, local_files_only=True, trust_remote_code=False,
        use_safetensors=True, output_loading_info=True)
    # Use only the vision network: CLIP and similar models also have a text
    # network.
    part = getattr(model, 'vision_model', model)
    prefix = 'vision_model.' if part is not model else ''
    missing = [key for key in loading['missing_keys']
               if key.startswith(prefix)]
    pooler = not any('pooler' in key for key in missing)
    missing = [key for key in missing if 'pooler' not in key]
    if missing:
        raise ValueError(f'{name} lacks {len(missing)} tensors of its '
                         f'{type(part).__name__}: {", ".join(missing[:3])}')
    clip_len = config.get('num_frames')
    file = folder / 'preprocessor_config.json'
    settings = {}
    if file.is_file():
        settings = hub_input(json.loads(file.read_text('utf-8')))
    settings['takes'] = 'clips' if clip_len else 'frames'
    return Network(HubModel(part, pooler), name, settings, clip_len)


def hub_input(cfg: dict[str, Any]) -> dict[str, Any]:
    """Return arguments of :class:`ImageInput` for preprocessor_config.json.

    Raises:
        ValueError: If it resizes in a way that is not supported.
    """
    # With an offset, such as for ViViT, values start at -1.
    offset = 1. if cfg.get('offset') else 0.
    factor = cfg.get('rescale_factor', 1 / 255) if cfg.get(
        'do_rescale', True) else 1.
    mean, std = cfg.get('image_mean', 0.), cfg.get('image_std', 1.)
    if not cfg.get('do_normalize', True):
        mean, std = 0., 1.
    settings = dict(
        value_range=round(255 * factor, 6), std=std,
        mean=[m + offset for m in mean] if isinstance(mean, list) else
        mean + offset)
    if cfg.get('do_resize', True) and 'size' in cfg:
        settings['resize'] = _side(cfg['size'])
        resample = cfg.get('resample', 2)
        if resample not in _RESAMPLE:
            raise ValueError(
                f'resample of preprocessor_config.json must be one of '
                f'{[*_RESAMPLE]}, got {resample}; pass input instead')
        settings['interpolation'] = _RESAMPLE[resample]
    if cfg.get('do_center_crop') and 'crop_size' in cfg:
        settings['crop'] = _side(cfg['crop_size'])
    return settings


def _side(size: int | dict[str, int]) -> int | tuple[int, int]:
    if isinstance(size, int):
        return size
    if 'shortest_edge' in size:
        return size['shortest_edge']
    if {'height', 'width'} <= size.keys():
        return size['height'], size['width']
    raise ValueError(f'size must have shortest_edge, or height and width, got '
                     f'{sorted(size)}; pass input instead')


class HubModel(nn.Module):
    """Pooled features of a transformers model.

    Args:
        model: Model of images or clips.
        pooler: True if its pooler is trained. The features are then its
            ``pooler_output``; otherwise, they are the mean of the tokens.
    """

    def __init__(self, model: nn.Module, pooler: bool) -> None:
        super().__init__()
        self.model = model
        self.pooler = pooler

    def forward(self, x: Tensor) -> Tensor:
        """Map [B, C, H, W] or [B, C, T, H, W] to [B, C]."""
        # transformers takes [B, T, C, H, W].
        out = self.model(
            pixel_values=x.transpose(1, 2) if x.dim() == 5 else x)
        pooled = getattr(out, 'pooler_output', None)
        if self.pooler and pooled is not None:
            # A convolutional network returns [B, C, 1, 1].
            return pooled.flatten(1)
        return out.last_hidden_state.mean(dim=1)
