# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Release files, which contain only weights, config and class names."""
import json
from collections.abc import Mapping
from pathlib import Path

import torch
from mmengine.config import Config
from safetensors import SafetensorError
from safetensors.torch import save_file
from torch import nn

from ..utils.printable import brief
from ..version import __version__

SUFFIXES = '.pth', '.safetensors'
# Config keys that belong to a run, not to the model.
RUN_KEYS = 'work_dir', 'load_from', 'resume', 'launcher'


def save_release(model: nn.Module, cfg: Config,
                 paths: Mapping[str, Path]) -> None:
    """Write a model's weights, config and class names.

    Args:
        model: Model from :func:`mmvidattn.get_model`.
        cfg: Config of the model.
        paths: Path of the file to write for each of ``SUFFIXES``.

    Raises:
        OSError: If a file cannot be written, for example on a full disk.
    """
    # safetensors needs contiguous tensors that do not share memory.
    weights = {name: value.detach().clone().contiguous()
               for name, value in model.state_dict().items()}
    cfg = cfg.copy()
    for name in RUN_KEYS:
        cfg.pop(name, None)
    meta = dict(
        cfg=cfg.pretty_text,
        dataset_meta=dict(model.dataset_meta),
        mmvidattn_version=__version__)
    try:
        torch.save(dict(meta=meta, state_dict=weights), paths['.pth'])
        # The header of safetensors accepts only strings.
        save_file(weights, paths['.safetensors'], dict(
            meta, format='pt', dataset_meta=json.dumps(meta['dataset_meta'])))
    # torch and safetensors have own errors for a full disk.
    except (RuntimeError, SafetensorError, OSError) as error:
        for path in paths.values():
            path.unlink(missing_ok=True)
        names = ' and '.join(str(path) for path in paths.values())
        raise OSError(f'cannot write {names}: {brief(error)}') from error
