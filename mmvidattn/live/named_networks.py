# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Networks that are no recognizers of mmaction2, by their names.

* ``timm://NAME``: ``timm.create_model(NAME)``, without its classifier.
* ``hf://OWNER/MODEL@REVISION``: a model of the Hugging Face Hub, of timm or
  transformers.
* ``MODULE:CALLABLE``: what the callable returns, or the network of that name,
  imported from the module.
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
    load_exactly,
    load_state_dict_file,
)
from ..utils.hub import SCHEME, hub_model

TIMM = 'timm://'
PRETRAINED = 'pretrained'
_CALLABLE = re.compile(r'[A-Za-z_][\w.]*:[A-Za-z_][\w.]*')
# Pillow's numbers, in preprocessor_config.json.
_RESAMPLE = {0: 'nearest', 2: 'bilinear', 3: 'bicubic'}


@dataclass
class Network:
    """A network, and what is known of its input.

    Attributes:
        model: Takes images or clips; gives features.
        name: For errors.
        image_input: Arguments of :class:`ImageInput`, as far as known.
        clip_len: Images of a clip, if known.
    """
    model: nn.Module
    name: str
    image_input: dict[str, Any] = field(default_factory=dict)
    clip_len: int | None = None


def is_network(config: Any) -> bool:
    """Tell whether it is the name of a network, or one, and no config."""
    if isinstance(config, nn.Module):
        return True
    text = str(config)
    return text.startswith((TIMM, SCHEME)) or bool(_CALLABLE.fullmatch(text))


def find_network(config: str | nn.Module,
                 checkpoint: str | Path | None) -> Network:
    """Build a network.

    Args:
        config: Its name, see the top of this file, or the network itself.
        checkpoint: Its weights: a file, or ``hf://OWNER/MODEL@REVISION``. For
            timm also 'pretrained', which downloads those that timm has under
            this name. None for those it has, or fresh ones; those of
            ``hf://`` belong to the name.

    Raises:
        ValueError: If there is no such network, or the weights are of
            another.
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
        found = importlib.import_module(module)
        for part in path.split('.'):
            found = getattr(found, part)
    except (ImportError, AttributeError) as error:
        raise ValueError(f'{name} must be MODULE:CALLABLE that can be '
                         f'imported: {error}') from error
    is_maker = callable(found) and not isinstance(found, nn.Module)
    model = found() if is_maker else found
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
    """Load weights of timm's, but for their classifier.

    Raises:
        ValueError: If they are of another model.
    """
    layers = cfg.get('classifier') or ()
    layers = (layers, ) if isinstance(layers, str) else layers
    heads = tuple(f'{layer}.' for layer in layers)
    kept = {k: v for k, v in tensors.items() if not k.startswith(heads)}
    load_exactly(model, kept, source)


def timm_input(cfg: dict[str, Any], name: str) -> dict[str, Any]:
    """Arguments of :class:`ImageInput` as timm evaluates a model.

    Args:
        cfg: The model's ``pretrained_cfg``. What it lacks is left out.
        name: Of the model, for errors.
    """
    found = dict(takes='frames', value_range=1.)
    for key in 'mean', 'std':
        if cfg.get(key) is not None:
            found[key] = tuple(cfg[key])
    if cfg.get('interpolation'):
        found['interpolation'] = cfg['interpolation']
    if cfg.get('input_size'):
        height, width = cfg['input_size'][-2:]
        fraction = cfg.get('crop_pct') or 1.
        mode = cfg.get('crop_mode') or 'center'
        scaled = [math.floor(side / fraction) for side in (height, width)]
        if mode == 'squash':
            found['resize'] = tuple(scaled)
        elif mode == 'center' and height == width:
            found['resize'] = scaled[0]
        else:
            raise ValueError(
                f'{name} crops {height} x {width} with crop_mode={mode!r}: '
                'give resize and crop of input')
        found['crop'] = (height, width)
    return found


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
    model, said = transformers.AutoModel.from_pretrained(
        folder, local_files_only=True, trust_remote_code=False,
        use_safetensors=True, output_loading_info=True)
    # Of CLIP and its like, which have a network of text as well.
    part = getattr(model, 'vision_model', model)
    prefix = 'vision_model.' if part is not model else ''
    missing = [key for key in said['missing_keys'] if key.startswith(prefix)]
    pooler = not any('pooler' in key for key in missing)
    missing = [key for key in missing if 'pooler' not in key]
    if missing:
        raise ValueError(f'{name} lacks {len(missing)} tensors of its '
                         f'{type(part).__name__}: {", ".join(missing[:3])}')
    clip_len = config.get('num_frames')
    file = folder / 'preprocessor_config.json'
    found = {}
    if file.is_file():
        found = hub_input(json.loads(file.read_text('utf-8')))
    found['takes'] = 'clips' if clip_len else 'frames'
    return Network(HubModel(part, pooler), name, found, clip_len)


def hub_input(cfg: dict[str, Any]) -> dict[str, Any]:
    """Arguments of :class:`ImageInput` by a preprocessor_config.json.

    Raises:
        ValueError: If it resizes in a way that is not known here.
    """
    # With an offset, as ViViT's, values begin at -1.
    offset = 1. if cfg.get('offset') else 0.
    factor = cfg.get('rescale_factor', 1 / 255) if cfg.get(
        'do_rescale', True) else 1.
    mean, std = cfg.get('image_mean', 0.), cfg.get('image_std', 1.)
    if not cfg.get('do_normalize', True):
        mean, std = 0., 1.
    found = dict(
        value_range=round(255 * factor, 6), std=std,
        mean=[m + offset for m in mean] if isinstance(mean, list) else
        mean + offset)
    if cfg.get('do_resize', True) and 'size' in cfg:
        found['resize'] = _side(cfg['size'])
        resample = cfg.get('resample', 2)
        if resample not in _RESAMPLE:
            raise ValueError(f'resample must be one of {[*_RESAMPLE]}, got '
                             f'{resample}; give the whole of input')
        found['interpolation'] = _RESAMPLE[resample]
    if cfg.get('do_center_crop') and 'crop_size' in cfg:
        crop = _side(cfg['crop_size'])
        found['crop'] = crop
    return found


def _side(size: int | dict[str, int]) -> int | tuple[int, int]:
    if isinstance(size, int):
        return size
    if 'shortest_edge' in size:
        return size['shortest_edge']
    if {'height', 'width'} <= size.keys():
        return size['height'], size['width']
    raise ValueError(f'size must have shortest_edge, or height and width, got '
                     f'{sorted(size)}; give the whole of input')


class HubModel(nn.Module):
    """The pooled features of a model of transformers.

    They are its ``pooler_output`` if it has a trained one, else the mean of
    its tokens.

    Args:
        model: Of images or clips.
        pooler: Whether its pooler is trained.
    """

    def __init__(self, model: nn.Module, pooler: bool) -> None:
        super().__init__()
        self.model = model
        self.pooler = pooler

    def forward(self, x: Tensor) -> Tensor:
        """[B, C, H, W] or [B, C, T, H, W] to [B, C]."""
        # transformers has the frames before the channels.
        out = self.model(
            pixel_values=x.transpose(1, 2) if x.dim() == 5 else x)
        pooled = getattr(out, 'pooler_output', None)
        if self.pooler and pooled is not None:
            # Of a network of convolutions [B, C, 1, 1].
            return pooled.flatten(1)
        return out.last_hidden_state.mean(dim=1)
