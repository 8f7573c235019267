# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Convert published weights into a checkpoint for this package."""
import argparse
from pathlib import Path

import torch

from ..apis import get_model, load_config
from ..apis.model_options import KEY, model_options
from ..apis.runner import one_line_errors
from ..convert import UNSTORED_OPTIONS, convert
from ..convert.flax_checkpoint import load_flax_file
from ..utils.checkpoint import load_state_dict_file
from ..utils.files import hash_file, replacing
from ..utils.hub import SCHEME, hub_file
from ..utils.printable import echo
from ..version import __version__

# Readers of sources that are not PyTorch or safetensors files.
READERS = dict(vivit_scenic=load_flax_file)


def convert_file(source: str, src: str, dst: Path, force: bool,
                 config: str | None = None) -> dict:
    """Convert a file, and return the tensors written.

    Args:
        source: Key of ``mmvidattn.convert.SOURCES``.
        src: Path of the file, or ``hf://OWNER/MODEL@REVISION``.
        dst: Path to write.
        force: Replace an existing file.
        config: Config of the model. It is an error if the tensors do not match
            this model exactly. The checkpoint also stores the model's options,
            so that configs with different options reject it. Defaults to None.
    """
    if dst.exists() and not force:
        raise FileExistsError(f'{dst} exists; replace it with --force')
    on_hub = src.startswith(SCHEME)
    path = hub_file(src) if on_hub else Path(src)
    load = READERS.get(source, load_state_dict_file)
    state_dict = convert(source, load(path))
    meta = dict(
        source=source,
        source_file=src if on_hub else path.name,
        source_sha256=hash_file(path),
        mmvidattn_version=__version__)
    if config is not None:
        meta |= {'config': config, KEY: model_options(
            load_config(config).model)}
    with replacing(dst, shared=True) as part:
        torch.save(dict(state_dict=state_dict, meta=meta), part)
        if config is not None:
            get_model(config, part)
    return state_dict


def run(args: argparse.Namespace) -> None:
    with one_line_errors():
        tensors = convert_file(
            args.source, args.src, args.dst, args.force, args.config)
    numel = sum(value.numel() for value in tensors.values())
    echo(f'{args.dst}: {len(tensors)} tensors, {numel} parameters, sha256 '
         f'{hash_file(args.dst)}')
    if args.source in UNSTORED_OPTIONS and args.config is None:
        echo('Options not stored in the tensors: '
             f'{UNSTORED_OPTIONS[args.source]}. Use the config of the model; '
             '--config stores its options in the file.')
