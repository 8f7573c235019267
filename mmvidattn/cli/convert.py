# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
r"""Convert published weights into a checkpoint of ours.

    mmvidattn convert linear_ff RELEASED.pth CONVERTED.pth
    mmvidattn convert laps RELEASED.pth CONVERTED.pth \
        --config laps_visformer_h_k400
    mmvidattn convert vivit_videomae hf://OWNER/MODEL@REVISION CONVERTED.pth
"""
from collections.abc import Sequence
from pathlib import Path

import torch

from ..apis import get_model, load_config
from ..apis.model_options import KEY, model_options
from ..apis.runner import one_line_errors
from ..convert import SOURCES, UNTOLD, convert
from ..convert.flax_checkpoint import load_flax_file
from ..utils.checkpoint import load_state_dict_file
from ..utils.files import hash_file, replacing
from ..utils.hub import SCHEME, hub_file
from ..utils.printable import echo
from ..version import __version__
from ._shared import parser_of

# What reads the sources that have a file format of their own.
FILES_OF = dict(vivit_scenic=load_flax_file)


def convert_file(source: str, src: str, dst: Path, force: bool,
                 config: str | None = None) -> dict:
    """Convert one file; returns the tensors that were written.

    Args:
        source: A key of ``mmvidattn.convert.SOURCES``.
        src: The file, or ``hf://OWNER/MODEL@REVISION``.
        dst: The file to write.
        force: Replace it if it is there.
        config: The config of the model that it is of. It must load into that
            strictly, and carries its options then, so that other configs
            refuse it.
    """
    if dst.exists() and not force:
        raise FileExistsError(f'{dst} exists; replace it with --force')
    on_hub = src.startswith(SCHEME)
    path = hub_file(src) if on_hub else Path(src)
    load = FILES_OF.get(source, load_state_dict_file)
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


def main(argv: Sequence[str] | None = None) -> None:
    parser = parser_of(__doc__)
    parser.add_argument('source', help=f'one of {", ".join(SOURCES)}')
    parser.add_argument(
        'src', help='.pth, .pt or .safetensors, or hf://OWNER/MODEL@REVISION '
        '(its model.safetensors, or /FILE.safetensors behind it); of '
        'vivit_scenic: the file named checkpoint')
    parser.add_argument('dst', type=Path, help='.pth to write')
    parser.add_argument(
        '--force', action='store_true', help='replace an existing file')
    parser.add_argument(
        '--config', help='of the model that the file is of: it is checked, '
        'and keeps the options that tensors do not tell, so that no other '
        'config takes it')
    args = parser.parse_args(argv)
    with one_line_errors():
        tensors = convert_file(
            args.source, args.src, args.dst, args.force, args.config)
    numel = sum(value.numel() for value in tensors.values())
    echo(f'{args.dst}: {len(tensors)} tensors, {numel} parameters, sha256 '
         f'{hash_file(args.dst)}')
    if args.source in UNTOLD and args.config is None:
        echo('The tensors do not tell: '
             f'{UNTOLD[args.source]}. Take the config of what the file is; '
             'with --config it is kept in the file.')
