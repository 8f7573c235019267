# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Fine-tune a model on your own videos.

    mmvidattn finetune FOLDER --model linear_ff_tiny_motion --weights FILE

FOLDER contains a folder of videos for each class, or folders train, val and
test that contain a folder for each class. It can also be a CSV file with
columns ``file`` and ``label``, and optionally ``start`` and ``stop`` (segment
in seconds; files are not changed), ``split`` (train, val, test) and ``group``
(person or camera; all videos of a group are in the same split).

    mmvidattn finetune ANNOTATIONS --videos FOLDER --stream

trains a detector of events in long videos. ANNOTATIONS lists the events, such
as a CSV file with columns ``video``, ``start``, ``end`` and ``label``, and
optionally ``subset`` (train, val, test) and ``group``. Several files are
merged. The model reads pixels, or with ``--model features`` the features of a
frozen network. The thresholds of each class are tuned on the validation
videos. The work directory then also has ``thresholds.json`` and
``predictions.csv``.

The work directory then has ``config.py``, ``data`` (the
lists), ``run`` (the training), ``best.pth`` and ``best.safetensors``,
``metrics.json``, ``confusion.png``, ``mistakes.png`` and ``curves.png``. The
same command resumes an interrupted run. Nothing is downloaded.
"""
import argparse
import time
from pathlib import Path

from ..finetune import options
from ..finetune.options import FineTuneOptions
from ..utils.exits import one_line_errors
from ._options import add_reading, at_least, positive


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add('source', type=Path, metavar='FOLDER', nargs='+',
        help='folder with a folder for each class, or CSV files; with '
        '--stream, files of annotated events')
    add_reading(parser)
    add('--multi-label', action='store_true',
        help='several labels per clip: a CSV file with a line for each label')
    add('--loss', choices=[*options.LOSSES], default=FineTuneOptions.loss,
        help='with --multi-label: binary cross-entropy, or the asymmetric '
        'loss for many classes (default: %(default)s)')
    add('--stream', action='store_true',
        help='train a detector of events in long videos')
    add('--videos', type=Path, metavar='FOLDER',
        help='with --stream: folder of the videos')
    add('--model', metavar='CONFIG',
        help=f'config to inherit (default: {options.DEFAULT_MODEL}); with '
        f'--stream: {" or ".join(options.STREAM_MODELS)} (default: '
        f'{options.STREAM_MODELS[0]})')
    add('--features', metavar='NETWORK', default=FineTuneOptions.features,
        help='with --stream: frozen network of --model features, as for '
        'extract-features, with the checkpoint --weights (default: '
        '%(default)s)')
    add('--weights', default='auto', metavar='FILE|default|auto|none',
        help='checkpoint to start from, with any classes; default: the '
        'weights in the package; none: random weights; auto: default if the '
        'package has weights of the model, or else none (default: auto)')
    add('--work-dir', type=Path, metavar='FOLDER',
        help='where to write (default: work_dirs/finetune_<name of FOLDER>)')
    add('--epochs', type=_number_or_word, default='auto', metavar='N',
        help='number of epochs, with --minutes at most, or auto: as many as '
        'fit into --minutes (default: auto)')
    add('--minutes', type=positive, metavar='M',
        help='time of the whole run (default: no limit with --epochs N, or '
        f'else {options.MINUTES}, and at most {options.MAX_EPOCHS} epochs)')
    add('--freeze', type=_number_or_word, default='auto',
        metavar='auto|none|backbone|spatial|N',
        help='backbone: train only the head; spatial: also the temporal '
        'encoder of a ViViT with model=fact_encoder (both compute the '
        'features of each clip once); N: freeze the first N '
        'blocks and the layers before them; none: train all layers; auto: '
        f'with weights and fewer than {options.FEW_CLIPS} training clips, '
        f'--lora {options.RANK} (or backbone, if the model has no attention '
        'projections), or else none (default: auto)')
    add('--lora', type=at_least(1), metavar='RANK',
        help="train only low-rank updates of the backbone's attention "
        'projections; best.pth has them merged')
    add('--layer-decay', type=float, metavar='F', help='learning rate of a '
        'layer divided by that of the next layer, such as 0.75')
    add('--balance', choices=options.BALANCES, default='none',
        help='for unbalanced classes: weights (inverse frequency, in the '
        "loss), focal (mmaction2's CBFocalLoss), sampler (mmengine's "
        'ClassBalancedDataset)')
    add('--batch-size', type=at_least(1), metavar='N',
        help="clips per step (default: the config's, less for a small set)")
    add('--lr', type=positive, metavar='F',
        help="learning rate (default: the config's, scaled to the batch; 0.3 "
        'of it from --weights unless with --freeze backbone or --lora)')
    add('--val-share', type=float, default=0.2, metavar='F',
        help='share of each class for validation if the CSV file has no '
        'split (default: 0.2)')
    add('--seed', type=int, default=0,
        help='seed of the split and the training (default: 0)')
    add('--dry-run', action='store_true',
        help='check the videos, print the config, and write nothing')
    add('--quick', action='store_true',
        help='check only the last frame of a video')
    add('--timeout', type=positive, default=60, metavar='S',
        help='seconds for checking a video (default: 60)')
    add('--workers', type=at_least(0), default=FineTuneOptions.workers,
        metavar='N', help='processes that read videos (default: %(default)s)')


def _number_or_word(word: str) -> str | int:
    return int(word) if word.isdecimal() else word


def make_options(args: argparse.Namespace) -> FineTuneOptions:
    """Return the options, or raise a ValueError if they do not fit."""
    values = {name: value for name, value in vars(args).items()
              if name not in ('dry_run', 'run')}
    source, *more = sources = values.pop('source')
    options = FineTuneOptions(source=source, more=tuple(more), **values)
    for path in sources:
        if not path.exists():
            raise FileNotFoundError(f'{path} does not exist: expected a folder'
                                    ' of videos or a file of annotations')
    return options


def run(args: argparse.Namespace) -> None:
    began = time.monotonic()
    from ..finetune.run import finetune

    with one_line_errors():
        given = make_options(args)
    finetune(given, args.dry_run, began)
