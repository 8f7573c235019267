# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Fine-tune a model on videos of your own.

    mmvidattn finetune FOLDER --model linear_ff_tiny_motion --weights FILE

FOLDER has a folder of videos for each class; or it is a csv with columns
``file`` and ``label``, and, where wanted, ``start`` and ``stop`` (seconds of a
segment; nothing is cut), ``split`` (train, val, test) and ``group`` (a person,
a camera: never on both sides of the split).

In the work directory there are then ``config.py``, which is yours to edit,
``data`` (the lists), ``run`` (the training), ``best.pth`` and
``best.safetensors``, ``metrics.json``, ``confusion.png``, ``mistakes.png``
and ``curves.png``. The same command again goes on where it was stopped.
Nothing is downloaded.
"""
import argparse
import csv
import io
import json
import os
import shlex
import shutil
import statistics
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from mmengine.runner import Runner
from mmengine.utils import ProgressBar

from ..apis.finetune_config import (
    BALANCES,
    KEPT,
    FineTuning,
    load_base,
    write_config,
)
from ..apis.finetune_report import (
    Answer,
    CollectAnswersHook,
    write_curves,
    write_report,
)
from ..apis.finetune_time import MAX_EPOCHS, fit_epochs
from ..apis.labels import read_labels
from ..apis.models import get_model, load_config
from ..apis.release import SUFFIXES, save_release
from ..apis.runner import (
    build_runner,
    leave,
    one_line_errors,
    quick_exit,
    unsaved,
)
from ..datasets.formats.video_segment import (
    VideoSegment,
    describe,
    fit_to_videos,
)
from ..datasets.own_videos import (
    OwnVideo,
    count,
    read_own_videos,
    some,
    split_videos,
)
from ..datasets.video_facts import VideoFacts, read_facts
from ..utils.checkpoint import find_resumable, is_url, read_checkpoint
from ..utils.files import write_atomically
from .check_videos import check

FEW = 10
# What a second run may have another value of.
FREE = 'workers', 'timeout', 'quick', 'dry_run', 'minutes'
# What older work directories do not have, which are of these values.
ADDED = dict(cache_features=None, variants=1)
NOTES = 'finetune.json'


class Examined(NamedTuple):
    """What is known of the videos.

    ``number`` counts them as they were given, ``facts`` are by file.
    """
    root: Path
    number: int
    splits: dict[str, list[OwnVideo]]
    classes: list[str]
    facts: dict[str, VideoFacts]


def parse_args(argv: Sequence[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter)
    add = parser.add_argument
    add('source', type=Path, metavar='FOLDER',
        help='folder with a folder for each class, or a csv')
    add('--model', default='linear_ff_tiny_motion', metavar='CONFIG',
        help='config to inherit, or its name (default: %(default)s)')
    add('--weights', type=Path, metavar='FILE',
        help='checkpoint of that model to start from, with whatever classes; '
        'without it the model learns from nothing')
    add('--work-dir', type=Path, metavar='FOLDER',
        help='where to write (default: work_dirs/finetune_<name of FOLDER>)')
    add('--epochs', type=_epochs, default='auto', metavar='N',
        help=f'how many, or auto: as many as fit, at most {MAX_EPOCHS} '
        '(default: auto)')
    add('--minutes', type=float, default=10, metavar='M',
        help='time that --epochs auto may take, for all (default: 10)')
    add('--freeze', type=_freeze, metavar='backbone|spatial|N',
        help='train the head alone; or that and the temporal encoder of a '
        'ViViT with model=fact_encoder; or leave what comes before the blocks '
        'and the first N blocks as they are')
    add('--cache-features', nargs='?', const='', metavar='FOLDER',
        help='with --freeze backbone or spatial: keep the features of what is '
        'frozen on disk, so that later epochs neither read a video nor run '
        'it (default of FOLDER: features in the work directory)')
    add('--variants', type=int, default=1, metavar='K',
        help='with --cache-features: each training video has K random '
        'outcomes of the pipeline, which take turns from epoch to epoch '
        '(default: 1, without augmentation)')
    add('--lora', type=int, metavar='RANK',
        help="of the backbone train low-rank updates of attention's "
        'projections alone; best.pth has them merged')
    add('--layer-decay', type=float, metavar='F',
        help='a layer learns at F times the rate of the one after it, such '
        'as 0.75')
    add('--balance', choices=BALANCES, default='none',
        help='for classes of unequal size: weights in the loss (the inverse '
        "share of a class), focal (mmaction2's CBFocalLoss), sampler "
        "(mmengine's ClassBalancedDataset repeats rare ones)")
    add('--batch-size', type=int, metavar='N',
        help="clips of a step (default: the config's, less for a small set)")
    add('--lr', type=float, metavar='F',
        help="learning rate (default: the config's in proportion to the "
        'batch; 0.3 of it from --weights unless with --freeze backbone or '
        '--lora)')
    add('--val-share', type=float, default=0.2, metavar='F',
        help='of the videos of a class, for validation, where the csv does '
        'not say (default: 0.2)')
    add('--seed', type=int, default=0,
        help='of the split and the training (default: 0)')
    add('--dry-run', action='store_true',
        help='check the videos, print the config, and write nothing')
    add('--quick', action='store_true',
        help='check the last frame of a video only, not every frame')
    add('--timeout', type=float, default=60, metavar='S',
        help='seconds that checking a video may take (default: 60)')
    add('--workers', type=int, default=min(4, os.cpu_count() or 1),
        metavar='N', help='processes that read videos (default: %(default)s)')
    args = parser.parse_args(argv)
    for name in ('minutes', 'timeout', 'lr', 'batch_size', 'lora', 'variants'):
        value = getattr(args, name)
        if value is not None and not value > 0:
            parser.error(f'--{name.replace("_", "-")} must be positive, got '
                         f'{value}')
    if args.layer_decay is not None and not 0 < args.layer_decay <= 1:
        parser.error('--layer-decay must be above 0 and at most 1, got '
                     f'{args.layer_decay}')
    if not 0 <= args.val_share < 1:
        parser.error('--val-share must be at least 0 and below 1, got '
                     f'{args.val_share}')
    if args.lora is not None and args.freeze is not None:
        parser.error('--lora freezes the backbone already: give it or '
                     '--freeze')
    if args.weights is None and (args.lora or args.freeze is not None):
        parser.error('--freeze and --lora keep what --weights has learned: '
                     'give these as well')
    if args.cache_features is None and args.variants > 1:
        parser.error('--variants is of --cache-features: give this as well')
    if args.cache_features is not None and args.freeze not in KEPT:
        parser.error('--cache-features keeps the features of what is frozen: '
                     f'give --freeze {" or ".join(KEPT)} as well')
    if args.workers < 0:
        parser.error(f'--workers must be at least 0, got {args.workers}')
    return args


def _epochs(word: str) -> str | int:
    if word != 'auto' and not (word.isdecimal() and int(word)):
        raise argparse.ArgumentTypeError(
            f'must be a number from 1, or auto, got {word!r}')
    return word if word == 'auto' else int(word)


def _freeze(word: str) -> str | int:
    if word not in KEPT and not word.isdecimal():
        raise argparse.ArgumentTypeError(
            f'must be {", ".join(KEPT)} or a number of blocks, got {word!r}')
    return word if word in KEPT else int(word)


def find_readable(root: Path, videos: Sequence[OwnVideo],
                  args: argparse.Namespace
                  ) -> tuple[dict[str, VideoFacts], dict[str, str]]:
    """Decode each file; returns what is known of it, or why it cannot be."""
    files = dict.fromkeys(video.file for video in videos)
    bad = {name: 'there is no such file' for name in files
           if not (root / name).is_file()}
    paths = {str(root / name): name for name in files if name not in bad}
    bar = ProgressBar(len(paths), file=sys.stderr) if paths else None
    found = check([*paths], max(1, args.workers), args.timeout,
                  not args.quick, bar.update) if paths else ()
    bad |= {paths[path]: why for path, why in found}
    print(file=sys.stderr)
    # Those that were decoded do not crash the decoder.
    return {name: read_facts(root / name) for name in files
            if name not in bad}, bad


def fit_segments(videos: Sequence[OwnVideo], facts: dict[str, VideoFacts]
                 ) -> tuple[list[OwnVideo], str]:
    """The segments within their videos, and what was cut or left out."""
    segments = [
        VideoSegment(str(i), video.file, video.start, video.end, {}, '')
        if not video.is_whole else None for i, video in enumerate(videos)]
    durations = {name: one.duration for name, one in facts.items()}
    kept, counts = fit_to_videos(
        [one for one in segments if one is not None], durations)
    ends = {int(one.id): one.end for one in kept}
    # An open end is no segment that is too long.
    is_open = sum(one is not None and one.end == float('inf')
                  for one in segments)
    counts['cut at the end of their video'] -= is_open
    fitted = [video if segments[i] is None else video._replace(end=ends[i])
              for i, video in enumerate(videos)
              if segments[i] is None or i in ends]
    return fitted, describe(+counts)


def say_found(root: Path, videos: Sequence[OwnVideo],
              facts: dict[str, VideoFacts], bad: dict[str, str]) -> None:
    """Print the classes, lengths, sizes and broken files."""
    classes = Counter(video.label for video in videos)
    lengths = [min(video.end, facts[video.file].duration) - video.start
               for video in videos]
    print(f'{root}: {count(videos, "video")} of '
          f'{count(classes, "class")}')
    for name, number in sorted(classes.items()):
        of_it = [length for video, length in zip(videos, lengths)
                 if video.label == name]
        print(f'  {name}: {number}, {min(of_it):.1f} to {max(of_it):.1f} s')
    sizes = Counter(f'{one.width}x{one.height}' for one in facts.values())
    rates = [one.fps for one in facts.values()]
    print(f'lengths {min(lengths):.1f} to {max(lengths):.1f} s (median '
          f'{statistics.median(lengths):.1f}); sizes '
          + some(f'{size} ({n})' for size, n in sizes.most_common())
          + f'; {min(rates):.4g} to {max(rates):.4g} frames a second')
    if bad:
        print(f'{count(bad, "video")} cannot be read and left out:')
        for name, why in sorted(bad.items()):
            print(f'  {name}: {why}')


def remark_on(splits: dict[str, list[OwnVideo]]) -> list[str]:
    """What is likely to disappoint.

    Raises:
        ValueError: If there is nothing to learn.
    """
    counts = {name: Counter(video.label for video in side)
              for name, side in splits.items()}
    train = counts.get('train', Counter())
    classes = sorted({label for one in counts.values() for label in one})
    if len(classes) < 2:
        raise ValueError(
            f'all videos are of one class, {some(classes)}: to tell classes '
            'apart takes two or more, such as one for all else')
    unseen = [name for name in classes if not train[name]]
    if unseen:
        raise ValueError('no training videos of '
                         f'{count(unseen, "class")}: {some(unseen)}')
    remarks = []
    single = [name for name in classes
              if sum(one[name] for one in counts.values()) == 1]
    if single:
        remarks.append(
            f'{count(single, "class")} of one video, which is for training, '
            f'so that nothing tells how well it is known: {some(single)}')
    few = [f'{name} ({train[name]})' for name in classes if train[name] < FEW]
    if few:
        remarks.append(
            f'few videos: {count(few, "class")} with less than {FEW} for '
            f'training, such as {some(few)}; the more, and the more unlike '
            'each other, the better')
    measured = counts.get('test') or counts.get('val')
    if 'val' not in splits:
        remarks.append('no validation: nothing chooses the best checkpoint, '
                       'and the last one is taken'
                       + ('' if measured else '; there will be no figures'))
    if measured:
        lacking = [name for name in classes
                   if not measured[name] and name not in single]
        if lacking:
            remarks.append(f'no test videos of {some(lacking)}')
        if measured.total() < 5 * FEW:
            remarks.append(
                f'figures are rough: of {count(measured.total(), "video")} '
                f'one is {100 / measured.total():.0f} %')
    largest, rarest = max(train.values()), min(train.values())
    if largest >= 3 * rarest:
        remarks.append(f'classes of unequal size, {rarest} to {largest}: see '
                       '--balance')
    return remarks


def format_list(side: Sequence[OwnVideo], classes: Sequence[str],
                facts: dict[str, VideoFacts], is_whole: bool) -> bytes:
    """A list of :class:`VideoSegmentDataset`: of whole videos, or a csv."""
    if is_whole:
        return ''.join(f'{video.file} {classes.index(video.label)}\n'
                       for video in side).encode()
    text = io.StringIO()
    rows = csv.writer(text, lineterminator='\n')
    rows.writerow(['video', 'start', 'end', 'label'])
    for video in side:
        end = min(video.end, facts[video.file].duration)
        rows.writerow([video.file, f'{video.start:.3f}', f'{end:.3f}',
                       video.label])
    return text.getvalue().encode()


def describe_options(args: argparse.Namespace) -> dict[str, Any]:
    """The options that a work directory depends on."""
    options = {name: value for name, value in vars(args).items()
               if name not in (*FREE, 'work_dir')}
    for name in 'source', 'weights', 'cache_features':
        if options[name]:
            options[name] = str(Path(options[name]).resolve())
    return options


def check_same(out: Path, args: argparse.Namespace) -> None:
    """Check that a work directory is of these options, and of these videos.

    Raises:
        ValueError: If it is of other options.
    """
    try:
        notes = json.loads((out / NOTES).read_text('utf-8'))
        found = {**ADDED, **notes['options']}
    except (ValueError, KeyError):
        raise ValueError(f'{out / NOTES} is none of this program: choose '
                         'another --work-dir') from None
    differing = [f'{name} was {found.get(name)}, and now is {value}'
                 for name, value in describe_options(args).items()
                 if found.get(name) != value]
    if differing:
        raise ValueError(
            f'{out} is of other options: {"; ".join(differing)}. Repeat the '
            f'old ones, and change {out / "config.py"} for the rest; or '
            'choose another --work-dir')
    print(f'{out}: goes on with its lists and its config')
    number = len(read_own_videos(args.source)[1])
    if number != notes['videos']:
        print(f'note: {args.source} had {count(notes["videos"], "video")} '
              f'then, and has {number} now; the lists stay as they are, and '
              'another --work-dir begins anew')


def check_weights(weights: Path | None) -> None:
    """Raise unless the checkpoint is a file that opens safely."""
    if weights is None:
        print('note: without --weights the model learns from nothing')
    elif is_url(str(weights).replace(':/', '://')):
        raise ValueError(f'--weights must be a file, got {weights}: nothing '
                         'is downloaded here')
    else:
        read_checkpoint(weights)


def examine(args: argparse.Namespace) -> Examined:
    """Read and check the videos, split them, and say what was found."""
    root, videos, remarks = read_own_videos(args.source)
    number = len(videos)
    facts, bad = find_readable(root, videos, args)
    if not facts:
        name, why = next(iter(bad.items()))
        raise ValueError(f'none of the {len(bad)} videos can be read, the '
                         f'first of them {name}: {why}')
    classes = {video.label for video in videos}
    videos, cut = fit_segments(
        [video for video in videos if video.file in facts], facts)
    if lost := sorted(classes - {video.label for video in videos}):
        remarks.append(f'{count(lost, "class")} without a readable video, '
                       f'left out: {some(lost)}')
    if not videos:
        raise ValueError(f'none of the {number} segments is within its video')
    say_found(root, videos, facts, bad)
    if cut:
        print(cut)
    splits = split_videos(videos, args.val_share, args.seed)
    remarks += remark_on(splits)
    print('; '.join(f'{name}: {len(side)}' for name, side in splits.items()))
    for remark in remarks:
        print(f'note: {remark}')
    return Examined(root, number, splits,
                    sorted({video.label for video in videos}), facts)


def prepare(args: argparse.Namespace, out: Path, command: str) -> dict:
    """Check the videos, and write the lists and the config.

    Returns:
        Notes for :func:`check_same`, to be written when the training begins.
    """
    load_base(args.model)
    if (out / 'run').exists():
        raise ValueError(f'{out / "run"} is there, and {out / NOTES} is not: '
                         'choose another --work-dir')
    if args.source.is_dir() and out.resolve().is_relative_to(
            args.source.resolve()):
        raise ValueError(f'--work-dir {out} lies in {args.source}, where it '
                         'would be taken for a class')
    found = examine(args)
    labels = [video.label for video in found.splits['train']]
    is_whole = all(video.is_whole for side in found.splits.values()
                   for video in side)
    tuning = FineTuning(
        args.model, found.root, out / 'data', 'txt' if is_whole else 'csv',
        [labels.count(name) for name in found.classes], list(found.splits),
        1 if args.epochs == 'auto' else args.epochs, args.weights, args.freeze,
        args.lora, args.layer_decay, args.balance, args.batch_size, args.lr,
        args.workers, args.seed)
    if args.cache_features is not None:
        tuning = tuning._replace(
            cache_dir=Path(args.cache_features or out / 'features'),
            num_variants=args.variants)
    text = write_config(tuning, command)
    if args.dry_run:
        if args.epochs == 'auto':
            print('note: --epochs auto is measured before the training')
        print(f'\n{text}', end='')
        return {}
    for name, side in found.splits.items():
        write_atomically(
            out / 'data' / f'{name}.{tuning.suffix}',
            format_list(side, found.classes, found.facts, is_whole))
    write_atomically(out / 'data/label_map.txt',
                     '\n'.join([*found.classes, '']).encode())
    write_atomically(out / 'config.py', text.encode())
    if args.epochs == 'auto':
        epochs, seconds = fit_epochs(
            load_config(out / 'config.py'), args.minutes)
        print(f'{count(epochs, "epoch")} of about {seconds:.1f} s')
        text = write_config(tuning._replace(epochs=epochs), command)
        write_atomically(out / 'config.py', text.encode())
    return dict(options=describe_options(args), videos=found.number)


def build_training(config: Path, out: Path) -> Runner:
    """The training, which goes on from the last checkpoint if there is one."""
    cfg = load_config(config)
    cfg.work_dir = str(out / 'run')
    if find_resumable(cfg.work_dir)[0]:
        cfg.resume, cfg.load_from = True, None
    runner = build_runner(cfg, False)
    # Builds the training set, and so checks it.
    runner.train_loop  # noqa: B018
    return runner


def find_best(out: Path) -> Path:
    """The best checkpoint of the training, or else the last one."""
    best = sorted((out / 'run').glob('best_*.pth'),
                  key=lambda path: path.stat().st_mtime)
    found = best[-1] if best else find_resumable(out / 'run')[0]
    if found is None:
        raise ValueError(f'the training left no checkpoint in {out / "run"}')
    return found


def test(config: Path, out: Path) -> list[Answer]:
    """The answers of the best model to the test videos."""
    cfg = load_config(config)
    cfg.work_dir = str(out / 'run/test')
    cfg.load_from, cfg.resume = str(out / 'best.pth'), False
    runner = build_runner(cfg, True)
    hook = CollectAnswersHook()
    runner.register_hook(hook)
    runner.test()
    return hook.answers


def finish(config: Path, out: Path) -> None:
    """Write the weights, the figures and the pictures."""
    cfg = load_config(config)
    best = find_best(out)
    model = get_model(config, best)
    parts = {suffix: out / f'best{suffix}.part' for suffix in SUFFIXES}
    save_release(model, cfg, parts)
    for suffix, part in parts.items():
        os.replace(part, out / f'best{suffix}')
    write_curves(out, out / 'run')
    if cfg.get('test_dataloader') is None:
        print('note: no figures and no pictures of mistakes, as there are no '
              'videos to test on')
        return
    classes = read_labels(cfg.test_dataloader.dataset.metainfo.classes)
    print(write_report(out, test(config, out), classes, Path(cfg.videos),
                       checkpoint=best.name))


def say_next(out: Path) -> None:
    """Print the commands to go on with."""
    config, weights, run = (
        shlex.quote(str(out / name))
        for name in ('config.py', 'best.pth', 'run'))
    print(f'''
{out}: {", ".join(sorted(path.name for path in out.iterdir()))}

Predict:
    mmvidattn predict VIDEO_OR_FOLDER {config} {weights}
Train on, after a change of the config such as more epochs (then repeat this
command, for the figures):
    mmvidattn train {config} --resume --work-dir {run}
Detect live, once an online detector is trained on features of this model
(mmvidattn extract-features; configs/testra):
    mmvidattn stream 0 testra_tiny_videos DETECTOR --rgb {config} {weights}''')


def main(argv: Sequence[str] | None = None) -> None:
    args = parse_args(argv)
    name = args.source.resolve().stem or 'videos'
    out = args.work_dir or Path('work_dirs', f'finetune_{name}')
    config = out / 'config.py'
    command = shlex.join(['mmvidattn', 'finetune',
                          *(sys.argv[1:] if argv is None else argv)])
    notes = None
    with one_line_errors():
        check_weights(args.weights)
        if args.dry_run or not (out / NOTES).is_file():
            notes = prepare(args, out, command)
        else:
            check_same(out, args)
        if args.dry_run:
            return
        try:
            runner = build_training(config, out)
        except (ValueError, TypeError):
            if notes is not None:
                # So that a corrected command may begin here.
                shutil.rmtree(out / 'run', ignore_errors=True)
            raise
        if notes is not None:
            write_atomically(out / NOTES, json.dumps(notes, indent=1).encode())
    with quick_exit():
        runner.train()
    with one_line_errors():
        finish(config, out)
    say_next(out)
    leave(unsaved(runner))
