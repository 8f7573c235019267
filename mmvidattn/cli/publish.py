# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Write a release of a training: its weights and its config.

    mmvidattn publish CONFIG CHECKPOINT --out-dir release

Writes ``<name of the config>_<date>-<hash>.pth`` and ``.safetensors``; the
hash is the first 8 digits of the file's own SHA-256. Both hold the weights of
exactly this model, the averaged ones if the training averaged them, the text
of the config and the names of the classes. Nothing else goes with them: no
optimizer, no paths of the work directory, no logs.
"""
import argparse
import json
import os
from collections.abc import Sequence
from datetime import date
from pathlib import Path

import torch
from safetensors.torch import save_file

from ..apis import get_model
from ..apis.models import find_config, load_config
from ..apis.runner import one_line_errors
from ..utils.checkpoint import hash_file
from ..utils.plain import to_plain
from ..version import __version__

# Of the run, not of the model.
LEFT_OUT = 'work_dir', 'load_from', 'resume', 'launcher'


def publish(config: str, checkpoint: str, out_dir: Path,
            day: date | None = None) -> list[Path]:
    """Write both files; returns where they are."""
    model = get_model(config, checkpoint)
    # One each of weights that are shared, contiguous, as safetensors wants.
    weights = {name: value.detach().clone().contiguous()
               for name, value in model.state_dict().items()}
    cfg = load_config(config)
    for name in LEFT_OUT:
        cfg.pop(name, None)
    meta = dict(
        cfg=cfg.pretty_text,
        dataset_meta=to_plain(model.dataset_meta, 'dataset_meta'),
        mmvidattn_version=__version__)
    out_dir.mkdir(parents=True, exist_ok=True)
    stem = f'{find_config(config).stem}_{day or date.today():%Y%m%d}'
    paths = []
    for suffix in 'pth', 'safetensors':
        part = out_dir / f'{stem}.{suffix}.part'
        if suffix == 'pth':
            torch.save(dict(meta=meta, state_dict=weights), part)
        else:
            # Its header holds strings only.
            save_file(weights, part, dict(
                meta, format='pt', dataset_meta=json.dumps(
                    meta['dataset_meta'])))
        path = out_dir / f'{stem}-{hash_file(part)[:8]}.{suffix}'
        os.replace(part, path)
        paths.append(path)
    return paths


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument('config', help='config file, or its name')
    parser.add_argument('checkpoint', help='checkpoint of a training')
    parser.add_argument(
        '--out-dir', type=Path, default=Path('release'),
        help='where to write (default: release)')
    args = parser.parse_args(argv)
    with one_line_errors():
        for path in publish(args.config, args.checkpoint, args.out_dir):
            print(f'{path}  sha256 {hash_file(path)}')
