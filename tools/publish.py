# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Write what of a training is released: its weights and its config.

    python tools/publish.py CONFIG CHECKPOINT --out-dir release

Writes ``<name of the config>_<date>-<hash>.pth`` and ``.safetensors``; the
hash is the first 8 digits of the file's own SHA-256. Both hold the weights of
exactly this model, the averaged ones if the training averaged them, the text
of the config and the names of the classes. Nothing else goes with them: no
optimizer, no paths of the work directory, no logs.
"""
import argparse
import json
import os
import sys
from datetime import date
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

# First of all, so that what is imported next is healed.
import mmvidattn  # noqa: E402, F401, I001  isort: skip

import torch  # noqa: E402
from safetensors.torch import save_file  # noqa: E402

from mmvidattn.apis import get_model  # noqa: E402
from mmvidattn.apis.models import find_config, load_config  # noqa: E402
from mmvidattn.apis.runner import one_line_errors  # noqa: E402
from mmvidattn.utils.checkpoint import hash_file  # noqa: E402
from mmvidattn.utils.plain import to_plain  # noqa: E402

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
        mmvidattn_version=mmvidattn.__version__)
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


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument('config', help='config file, or its name')
    parser.add_argument('checkpoint', help='checkpoint of a training')
    parser.add_argument(
        '--out-dir', type=Path, default=Path('release'),
        help='where to write (default: release)')
    args = parser.parse_args()
    with one_line_errors('publish.py'):
        for path in publish(args.config, args.checkpoint, args.out_dir):
            print(f'{path}  sha256 {hash_file(path)}')


if __name__ == '__main__':
    main()
