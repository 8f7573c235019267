# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Write the release files of a trained model: weights and config."""
import argparse
import os
from datetime import date
from pathlib import Path

from ..apis import get_model
from ..apis.models import find_config, load_config
from ..apis.release import SUFFIXES, save_release
from ..apis.runner import one_line_errors
from ..utils.files import hash_file
from ..utils.printable import echo


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


def run(args: argparse.Namespace) -> None:
    with one_line_errors():
        for path in publish(args.config, args.checkpoint, args.out_dir):
            echo(f'{path}  sha256 {hash_file(path)}')
