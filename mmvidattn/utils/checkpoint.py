# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Reading checkpoints safely, and loading them strictly."""
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from mmengine.runner.checkpoint import CheckpointLoader
from safetensors.torch import load_file
from torch import Tensor, nn

# Where the tensors are in the files of the usual training programs.
WRAPPERS = ('state_dict', 'model', 'model_state')
MAX_NAMES = 3


@CheckpointLoader.register_scheme(prefixes=r'.+\.safetensors$')
def load_from_safetensors(filename: str, map_location: Any) -> dict:
    """Lets ``load_from`` and ``Pretrained`` of a config take such a file."""
    if not Path(filename).is_file():
        raise FileNotFoundError(f'no file {filename}')
    return load_file(filename, device=str(map_location or 'cpu'))


def read_checkpoint(path: str | Path) -> dict[str, Any]:
    """Read a checkpoint of tensors and plain types, to the CPU.

    Args:
        path: A file of ``torch.save`` or of safetensors, or a URL of the
            kinds that mmengine knows.

    Raises:
        FileNotFoundError: If there is no such file.
        ValueError: If it is no checkpoint, or would run code when loaded.
    """
    path = str(path)
    try:
        checkpoint = CheckpointLoader.load_checkpoint(path, 'cpu', 'silent')
    except FileNotFoundError:
        raise FileNotFoundError(f'no checkpoint file {path}') from None
    except Exception as error:
        # A file of another kind can fail in any way.
        names = re.findall(r'GLOBAL (\S+)', str(error))
        if not names:
            raise ValueError(
                f'{path} is not a checkpoint: {_brief(error)}') from error
        raise ValueError(
            f'{path} is refused: loading it would call {names[0]}. If you '
            'trust it, load it with the program that wrote it and save its '
            "tensors alone: torch.save(checkpoint['state_dict'], FILE)"
        ) from error
    if not isinstance(checkpoint, Mapping):
        raise ValueError(f'{path} is not a checkpoint: it holds a '
                         f'{type(checkpoint).__name__}')
    return checkpoint


def load_state_dict_file(path: str | Path) -> dict[str, Tensor]:
    """The tensors of a checkpoint, out of their usual wrappers.

    See :func:`read_checkpoint` for the arguments and errors.
    """
    return _unwrap(read_checkpoint(path), path)


def load_checkpoint(model: nn.Module, path: str | Path) -> dict[str, Any]:
    """Load a checkpoint of exactly this model.

    Args:
        model: The model. After an error it may have part of the weights.
        path: See :func:`read_checkpoint`.

    Returns:
        What the checkpoint tells of itself, its ``meta``.

    Raises:
        ValueError: If the checkpoint is of another model.
    """
    checkpoint = read_checkpoint(path)
    state_dict = _unwrap(checkpoint, path)
    try:
        model.load_state_dict(state_dict)
    except RuntimeError as error:
        raise ValueError(
            _mismatch(model, state_dict, path, str(error))) from None
    return checkpoint.get('meta', {})


def require_overlap(model: nn.Module, path: str | Path) -> None:
    """Check that a checkpoint to start from has something for the backbone.

    Raises:
        ValueError: If no tensor of the backbone is in it, by name and shape.
    """
    found = load_state_dict_file(path)
    wanted = {
        name: value.shape
        for name, value in model.state_dict().items()
        if name.startswith('backbone.') or not hasattr(model, 'backbone')
    }
    if not any(found[name].shape == shape
               for name, shape in wanted.items() if name in found):
        raise ValueError(
            f'{path} has nothing for the backbone of {_describe(model)}: it '
            f'has {_some(found)}; expected {_some(wanted)}')


def _unwrap(checkpoint: Mapping, path: str | Path) -> dict[str, Tensor]:
    wrapped = [checkpoint[key] for key in WRAPPERS
               if isinstance(checkpoint.get(key), Mapping)]
    state_dict = dict((wrapped or [checkpoint])[0])
    others = [name for name, value in state_dict.items()
              if not torch.is_tensor(value)]
    if others or not state_dict:
        raise ValueError(
            f'{path} is not a checkpoint: expected tensors by name, or these '
            f'under {" or ".join(map(repr, WRAPPERS))}, got {_some(others)}')
    if all(name.startswith('module.') for name in state_dict):
        return {name[len('module.'):]: v for name, v in state_dict.items()}
    return state_dict


def _mismatch(model: nn.Module, state_dict: Mapping[str, Tensor],
              path: str | Path, error: str) -> str:
    own = model.state_dict()
    # Hooks of the model may rename and resize while it loads, so that what
    # differs is at fault only if torch says so.
    missing = [n for n in own if n not in state_dict and f'"{n}"' in error]
    unknown = [n for n in state_dict if n not in own and f'"{n}"' in error]
    shapes = [f'{n} {tuple(state_dict[n].shape)}, expected '
              f'{tuple(own[n].shape)}' for n in own
              if f'size mismatch for {n}:' in error and n in state_dict]
    faults = [f'{what} {len(names)}: {_some(names, "; ")}'
              for what, names in (('missing', missing),
                                  ('unexpected', unknown),
                                  ('of another shape', shapes)) if names]
    matched = len(own) - len(missing) - len(shapes)
    return (f'{path} is not of this model, {_describe(model)}: {matched} of '
            f'its {len(own)} tensors match; '
            + ('. '.join(faults) if faults else ' '.join(error.split())))


def _describe(model: nn.Module) -> str:
    parts = [type(getattr(model, name)).__name__
             for name in ('backbone', 'cls_head') if hasattr(model, name)]
    name = type(model).__name__
    return f'{name}({", ".join(parts)})' if parts else name


def _some(names: Any, separator: str = ', ') -> str:
    names = list(names)
    shown = names[:MAX_NAMES] + ['...'] * (len(names) > MAX_NAMES)
    return separator.join(shown) or 'nothing'


def _brief(error: Exception) -> str:
    # torch goes on about how to load it unsafely.
    message = str(error).split('WeightsUnpickler error:')[-1]
    words = ' '.join(message.split()) or 'it is empty'
    return f'{type(error).__name__}: {words[:200]}'
