# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
r"""Convert published weights into a checkpoint for this package.

    mmvidattn convert linear_ff RELEASED.pth CONVERTED.pth
    mmvidattn convert laps RELEASED.pth CONVERTED.pth \
        --config laps_visformer_h_k400
    mmvidattn convert vivit_videomae hf://OWNER/MODEL@REVISION CONVERTED.pth
"""
import argparse
from pathlib import Path

from ..utils.exits import one_line_errors
from ..utils.printable import count, echo


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        'source', help='kind of the weights, such as linear_ff, testra or '
        'vit_timm; an unknown one lists all')
    parser.add_argument(
        'src', help='.pth, .pt or .safetensors file; or '
        'hf://OWNER/MODEL@REVISION for model.safetensors, and '
        'hf://OWNER/MODEL@REVISION/FILE.safetensors for another file; for '
        'vivit_scenic, the file named checkpoint')
    parser.add_argument('dst', type=Path, help='.pth file to write')
    parser.add_argument(
        '--force', action='store_true', help='replace an existing file')
    parser.add_argument(
        '--config', help='config of the model: check that the tensors fit, '
        'and store the model options, so that configs with different options '
        'reject the checkpoint')


def run(args: argparse.Namespace) -> None:
    import torch

    from ..apis import get_model, load_config
    from ..apis.models import MODEL_OPTIONS, model_options
    from ..convert import UNSTORED_OPTIONS, convert, find_converter
    from ..convert.flax_checkpoint import load_flax_file
    from ..utils.checkpoint import load_state_dict_file
    from ..utils.files import hash_file, replacing
    from ..utils.remote_files import HUB, hub_file
    from ..version import __version__

    with one_line_errors():
        # Name all sources before the file is needed.
        find_converter(args.source)
        if args.dst.exists() and not args.force:
            raise FileExistsError(f'{args.dst} exists; replace it with '
                                  '--force')
        on_hub = args.src.startswith(HUB)
        path = hub_file(args.src) if on_hub else Path(args.src)
        load = (load_flax_file if args.source == 'vivit_scenic' else
                load_state_dict_file)
        tensors = convert(args.source, load(path))
        meta = dict(
            source=args.source,
            source_file=args.src if on_hub else path.name,
            source_sha256=hash_file(path),
            mmvidattn_version=__version__)
        if args.config is not None:
            cfg = load_config(args.config)
            meta |= {'config': args.config,
                     MODEL_OPTIONS: model_options(cfg.model)}
        with replacing(args.dst, shared=True) as part:
            torch.save(dict(state_dict=tensors, meta=meta), part)
            if args.config is not None:
                get_model(cfg, part)
    numel = sum(value.numel() for value in tensors.values())
    echo(f'{args.dst}: {count(tensors, "tensor")}, {numel} parameters, '
         f'sha256 {hash_file(args.dst)}')
    if args.source in UNSTORED_OPTIONS and args.config is None:
        echo('Options not stored in the tensors: '
             f'{UNSTORED_OPTIONS[args.source]}. Use the config of the model; '
             '--config stores its options in the file.')
