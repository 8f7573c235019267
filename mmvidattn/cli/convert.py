# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Convert published weights into a checkpoint of ours.

    mmvidattn convert linear_ff RELEASED.pth CONVERTED.pth
"""
import argparse
import hashlib
import os
from collections.abc import Sequence
from pathlib import Path

import torch

from ..apis.runner import one_line_errors
from ..convert import SOURCES, UNTOLD, convert
from ..utils.checkpoint import load_state_dict_file
from ..utils.flax_checkpoint import load_flax_file
from ..version import __version__

# What reads the sources that have a file format of their own.
FILES_OF = dict(vivit_scenic=load_flax_file)


def sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def convert_file(source: str, src: Path, dst: Path, force: bool) -> dict:
    """Convert one file; returns the tensors that were written."""
    if dst.exists() and not force:
        raise FileExistsError(f'{dst} exists; replace it with --force')
    load = FILES_OF.get(source, load_state_dict_file)
    state_dict = convert(source, load(src))
    meta = dict(
        source=source,
        source_file=src.name,
        source_sha256=sha256(src),
        mmvidattn_version=__version__)
    # Beside the place it goes to, so that it is there whole or not at all.
    dst.parent.mkdir(parents=True, exist_ok=True)
    part = dst.with_name(f'{dst.name}.part{os.getpid()}')
    try:
        torch.save(dict(state_dict=state_dict, meta=meta), part)
        os.replace(part, dst)
    finally:
        part.unlink(missing_ok=True)
    return state_dict


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument('source', help=f'one of {", ".join(SOURCES)}')
    parser.add_argument(
        'src', type=Path, help='.pth, .pt or .safetensors; of vivit_scenic: '
        'the file named checkpoint')
    parser.add_argument('dst', type=Path, help='.pth to write')
    parser.add_argument(
        '--force', action='store_true', help='replace an existing file')
    args = parser.parse_args(argv)
    with one_line_errors():
        tensors = convert_file(args.source, args.src, args.dst, args.force)
    numel = sum(value.numel() for value in tensors.values())
    print(f'{args.dst}: {len(tensors)} tensors, {numel} parameters, sha256 '
          f'{sha256(args.dst)}')
    if args.source in UNTOLD:
        print('The tensors do not tell: '
              f'{UNTOLD[args.source]}. Take the config of what the file is.')
