# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Write the release files of a trained model: weights and config.

    mmvidattn publish CONFIG CHECKPOINT --out-dir release

Writes ``<name of the config>_<date>-<hash>.pth`` and ``.safetensors``; the
hash is the first 8 digits of the file's SHA-256. Both contain only the weights
of the model (averaged weights if the training averaged them), the text of the
config and the class names: no optimizer, no paths of the work directory and no
logs.
"""
import os
from collections.abc import Sequence
from datetime import date
from pathlib import Path

from ..apis import get_model
from ..apis.models import find_config, load_config
from ..apis.release import SUFFIXES, save_release
from ..apis.runner import one_line_errors
from ..utils.files import hash_file
from ..utils.printable import echo
from ._shared import add_config, parser_of


def publish(config: str, checkpoint: str, out_dir: Path,
            day: date | None = None) -> list[Path]:
    """Write both files, and return their paths."""
    model = get_model(config, checkpoint)
    cfg = load_config(config)
    out_dir.mkdir(parents=True, exist_ok=True)
    stem = f'{find_config(config).stem}_{day or date.today():%Y%m%d}'
    paths = []
    parts = {suffix: out_dir / f'{stem}{suffix}.part' for suffix in SUFFIXES}
    save_release(model, cfg, parts)
    for suffix, part in parts.items():
        path = out_dir / f'{stem}-{hash_file(part)[:8]}{suffix}'
        os.replace(part, path)
        paths.append(path)
    return paths


def main(argv: Sequence[str] | None = None) -> None:
    parser = parser_of(__doc__)
    add_config(parser, checkpoint=False)
    parser.add_argument('checkpoint', help='checkpoint of a training')
    parser.add_argument(
        '--out-dir', type=Path, default=Path('release'),
        help='folder to write to (default: release)')
    args = parser.parse_args(argv)
    with one_line_errors():
        for path in publish(args.config, args.checkpoint, args.out_dir):
            echo(f'{path}  sha256 {hash_file(path)}')
