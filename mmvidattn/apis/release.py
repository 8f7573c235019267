# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Weights and what they are of, in a file, and nothing else."""
import json
from collections.abc import Mapping
from pathlib import Path

import torch
from mmengine.config import Config
from safetensors.torch import save_file
from torch import nn

from ..utils.plain import to_plain
from ..version import __version__

SUFFIXES = '.pth', '.safetensors'
# Of the run, not of the model.
LEFT_OUT = 'work_dir', 'load_from', 'resume', 'launcher'


def save_release(model: nn.Module, cfg: Config,
                 paths: Mapping[str, Path]) -> None:
    """Write the weights of a model, its config and the names of its classes.

    Args:
        model: Of :func:`mmvidattn.get_model`.
        cfg: Its config.
        paths: The file to write for each of ``SUFFIXES``.
    """
    # One each of weights that are shared, contiguous, as safetensors wants.
    weights = {name: value.detach().clone().contiguous()
               for name, value in model.state_dict().items()}
    cfg = cfg.copy()
    for name in LEFT_OUT:
        cfg.pop(name, None)
    meta = dict(
        cfg=cfg.pretty_text,
        dataset_meta=to_plain(model.dataset_meta, 'dataset_meta'),
        mmvidattn_version=__version__)
    torch.save(dict(meta=meta, state_dict=weights), paths['.pth'])
    # Its header holds strings only.
    save_file(weights, paths['.safetensors'], dict(
        meta, format='pt', dataset_meta=json.dumps(meta['dataset_meta'])))
