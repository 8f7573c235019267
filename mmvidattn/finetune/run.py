# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Fine-tune a model: prepare, train, test, and write results."""
import json
import math
import os
import shlex
import shutil
import sys
from contextlib import ExitStack, suppress
from dataclasses import replace
from itertools import count as count_from
from pathlib import Path

from mmengine.config import Config
from mmengine.runner import Runner

from ..apis.bundle import save_bundle
from ..apis.labels import read_labels
from ..apis.models import (
    DEFAULT,
    find_default,
    find_weights,
    get_model,
    load_config,
)
from ..apis.release import SUFFIXES, save_release
from ..apis.runner import (
    build_runner,
    leave,
    one_line_errors,
    quick_exit,
    unsaved,
)
from ..datasets.annotations.custom.labeled_videos import (
    count,
    read_labeled_videos,
)
from ..utils.checkpoint import find_resumable, is_url, read_checkpoint
from ..utils.files import write_atomically
from ..utils.interrupts import one_line_stop
from ..utils.lock import lock_folder
from ..utils.printable import echo
from .config import build_config, format_config, load_base
from .console import ConsoleHook, no_prints
from .epochs import fit_epochs
from .options import FineTuneOptions
from .plan import make_plan
from .report import (
    Answer,
    CollectAnswersHook,
    chance_of,
    write_curves,
    write_report,
)

# File with the options of the run, written when the training begins.
NOTES = 'finetune.json'
BUNDLE = 'bundle'
# Fewer epochs trigger a note.
FEW_EPOCHS = 10
# Measured by tools/studies/few_clips.py.
EXPECTED = ('With 12 clips per class, a small model reached 52 to 79 % on '
            'four classes of motion, and 96 to 100 % on four scenes')


def finetune(options: FineTuneOptions, command: str,
             dry_run: bool = False) -> None:
    """Fine-tune a model, or resume, and write all results.

    Args:
        options: Options of the run.
        command: Command line, for the header of the config.
        dry_run: Only check the videos and print the config.
    """
    with quick_exit(), one_line_stop('; the same command continues'):
        with one_line_errors():
            options = replace(options, weights=_choose_weights(options))
            if dry_run:
                _prepare(options, command, dry_run)
                return
        options = replace(options, work_dir=_choose_folder(options))
        with ExitStack() as locks:
            with one_line_errors():
                locks.enter_context(lock_folder(options.out))
                runner = _start(options, command)
                # A user may also run `mmvidattn train` there.
                locks.enter_context(lock_folder(options.out / 'run'))
            if runner is not None:
                _train(runner, options.out)
            with one_line_errors():
                _write_results(options.out)
    _print_next_steps(options.out)
    leave('' if runner is None else unsaved(runner))


def _choose_folder(options: FineTuneOptions) -> Path:
    """Return the work directory of a run with equal options, or a free one.

    A finished run is not reused if the number of videos has changed.
    """
    if options.work_dir is not None:
        return options.work_dir
    for number in count_from(1):
        out = options.out
        if number > 1:
            out = out.with_name(f'{out.name}_{number}')
        if not (out / NOTES).exists():
            if not (out / 'run').exists():
                return out
            continue
        with suppress(ValueError):
            notes = _read_notes(out)
            if not _differences(options, notes) and not (
                    notes.get('done') and notes['videos'] != len(
                        read_labeled_videos(options.source)[1])):
                return out


def _start(options: FineTuneOptions, command: str) -> Runner | None:
    """Build the training, or return None if it is complete."""
    out, notes = options.out, None
    if not (out / NOTES).is_file():
        notes = _prepare(options, command)
    else:
        _check_resumable(options)
        if _read_notes(out).get('done') == load_config(
                out / 'config.py').max_epochs:
            echo('the training is complete')
            return None
    try:
        runner = _build_training(out)
    except (ValueError, TypeError):
        if notes is not None:
            # Remove the folder, so that a corrected command can use it.
            shutil.rmtree(out / 'run', ignore_errors=True)
        raise
    if notes is not None:
        write_atomically(out / NOTES, json.dumps(notes, indent=1))
    return runner


def _train(runner: Runner, out: Path) -> None:
    """Train, and record in finetune.json that the training is complete."""
    echo(f'{len(runner.train_dataloader)} steps per epoch; full log: '
         f'{Path(runner.log_dir, runner.timestamp)}.log')
    console = ConsoleHook()
    runner.register_hook(console)
    try:
        with no_prints():
            runner.train()
    finally:
        console.end_line()
    if runner.train_loop.stop_training:
        echo(f'stopped early after epoch {runner.epoch}: the training set is '
             'learned, and the validation does not improve')
    notes = _read_notes(out) | dict(done=runner.max_epochs)
    write_atomically(out / NOTES, json.dumps(notes, indent=1))


def _choose_weights(options: FineTuneOptions) -> Path | str | None:
    """Return the checkpoint, None for random weights, or ``'default'``.

    Raises:
        ValueError: If the checkpoint is not a local file, or is unsafe.
        FileNotFoundError: If there is no such file.
    """
    weights, model = options.weights, options.model
    if str(weights) == 'auto':
        weights = DEFAULT
        with suppress(ValueError):
            find_default(model)
            echo(f'start weights: {model}, included in the package')
            return DEFAULT
        weights = 'none'
        if sys.stdin.isatty() and sys.stdout.isatty():
            echo(f'The package has no weights of {model}. `mmvidattn weights` '
                 'lists free ones')
            weights = (input('File to start from, or Enter for none: ')
                       or 'none')
    if str(weights) in ('none', 'None'):
        if options.lora or options.freeze not in ('auto', 'none', None):
            raise ValueError('--freeze and --lora need --weights')
        echo('note: without --weights, training starts from random weights. '
             f'{EXPECTED}')
        return None
    if is_url(str(weights).replace(':/', '://')):
        raise ValueError(f'--weights must be a local file, got {weights}: '
                         'download it first')
    read_checkpoint(find_weights(model, str(weights)))
    return DEFAULT if str(weights) == DEFAULT else Path(weights)


def _prepare(options: FineTuneOptions, command: str,
             dry_run: bool = False) -> dict:
    """Check the videos, and write the lists and the config.

    Returns:
        Content of ``finetune.json``, which is written when training begins.
    """
    out, source = options.out, options.source
    load_base(options.model)
    if (out / 'run').exists() and not dry_run:
        raise ValueError(f'{out / "run"} exists, but {out / NOTES} does not: '
                         'choose another --work-dir')
    if source.is_dir() and out.resolve().is_relative_to(source.resolve()):
        raise ValueError(f'--work-dir {out} must not be inside {source}: it '
                         'would become a class')
    plan = make_plan(options)
    is_auto = options.epochs == 'auto'
    cfg = build_config(options, plan, 1 if is_auto else options.epochs)
    if dry_run:
        if is_auto:
            echo('note: --epochs auto is measured before the training')
        echo(f'\n{format_config(cfg, command)}', end='')
        return {}
    plan.write_lists(out / 'data')
    if not Path(cfg['_base_']).is_file():
        load_config(options.model).dump(cfg['_base_'])
    config = out / 'config.py'
    write_atomically(config, format_config(cfg, command).encode())
    if is_auto:
        with no_prints():
            epochs, seconds = fit_epochs(load_config(config), options.minutes)
        echo(f'{count(epochs, "epoch")} of about {seconds:.1f} s')
        if epochs < FEW_EPOCHS:
            echo('note: a model learns little in so few epochs; --minutes '
                 f'{math.ceil(options.minutes * FEW_EPOCHS / epochs)} would '
                 f'allow {FEW_EPOCHS}')
        cfg = build_config(options, plan, epochs)
        write_atomically(config, format_config(cfg, command).encode())
    val = [video.label for video in plan.splits.get('val', ())]
    return dict(options=options.fixed(), videos=plan.number,
                chance=chance_of(val) if val else None,
                seconds=plan.clip_seconds)


def _check_resumable(options: FineTuneOptions) -> None:
    """Check that a work directory has the same options and videos.

    Raises:
        ValueError: If the options differ.
    """
    out, source = options.out, options.source
    notes = _read_notes(out)
    differing = _differences(options, notes)
    if differing:
        raise ValueError(
            f'{out} was started with different options: '
            f'{"; ".join(differing)}. Repeat the old options and change '
            f'{out / "config.py"} instead, or choose another --work-dir')
    echo(f'{out}: resuming with its lists and its config')
    number = len(read_labeled_videos(source)[1])
    if number != notes['videos']:
        echo(f'note: {source} had {count(notes["videos"], "video")} and now '
             f'has {number}, but the run keeps its lists. Choose another '
             '--work-dir to use all videos')


def _read_notes(out: Path) -> dict:
    try:
        notes = json.loads((out / NOTES).read_text('utf-8'))
        notes['options'] = {**FineTuneOptions.ADDED, **notes['options']}
        return notes
    except (ValueError, KeyError, TypeError):
        raise ValueError(f'{out / NOTES} was not written by mmvidattn '
                         'finetune: choose another --work-dir') from None


def _differences(options: FineTuneOptions, notes: dict) -> list[str]:
    """Describe the options that differ from an earlier run."""
    earlier = notes['options']
    return [f'{name} was {earlier.get(name)}, and now is {value}'
            for name, value in options.fixed().items()
            if earlier.get(name) != value]


def _build_training(out: Path) -> Runner:
    """Build the training; resume if there is a checkpoint."""
    cfg = _load(out, out / 'run')
    if find_resumable(cfg.work_dir)[0]:
        cfg.resume, cfg.load_from = True, None
    runner = build_runner(cfg, False)
    # Build the training loop now, to find errors in the training set.
    runner.train_loop  # noqa: B018
    return runner


def _load(out: Path, work_dir: Path) -> Config:
    cfg = load_config(out / 'config.py')
    cfg.work_dir = str(work_dir)
    cfg.console_log_level = 'WARNING'
    return cfg


def _find_best(out: Path) -> Path:
    """Return the best checkpoint of the training, or else the last one."""
    best = sorted((out / 'run').glob('best_*.pth'),
                  key=lambda path: path.stat().st_mtime)
    checkpoint = best[-1] if best else find_resumable(out / 'run')[0]
    if checkpoint is None:
        raise ValueError(f'the training left no checkpoint in {out / "run"}')
    return checkpoint


def _test(out: Path) -> list[Answer]:
    """Return the predictions of the best model for the test videos."""
    cfg = _load(out, out / 'run/test')
    cfg.load_from, cfg.resume = str(out / 'best.pth'), False
    runner = build_runner(cfg, True)
    hook = CollectAnswersHook()
    runner.register_hook(hook)
    with no_prints():
        runner.test()
    return hook.answers


def _write_results(out: Path) -> None:
    """Write the weights, the metrics and the images."""
    config = out / 'config.py'
    cfg = load_config(config)
    best = _find_best(out)
    model = get_model(config, best)
    parts = {suffix: out / f'best{suffix}.part' for suffix in SUFFIXES}
    save_release(model, cfg, parts)
    for suffix, part in parts.items():
        os.replace(part, out / f'best{suffix}')
    save_bundle(out / BUNDLE, config, out / 'best.pth',
                seconds=_read_notes(out).get('seconds'), replace=True)
    write_curves(out, out / 'run', _read_notes(out).get('chance'))
    if cfg.get('test_dataloader') is None:
        echo('note: there are no test videos, so metrics and mistakes.png are '
             'not written')
        return
    classes = read_labels(cfg.test_dataloader.dataset.metainfo.classes)
    echo(write_report(out, _test(out), classes, Path(cfg.videos),
                      checkpoint=best.name))


def _print_next_steps(out: Path) -> None:
    bundle, config, run = (
        shlex.quote(str(out / name)) for name in (BUNDLE, 'config.py', 'run'))
    seconds = _read_notes(out).get('seconds')
    window = f' --seconds {seconds:g}' if seconds else ''
    echo(f'''
{out}: {", ".join(sorted(path.name for path in out.glob("[!.]*")))}

The model is {bundle}, which runs on any machine with mmvidattn:
    mmvidattn predict VIDEO_OR_FOLDER {bundle}
    mmvidattn stream 0 {bundle}{window}
    mmvidattn export {bundle} model.onnx
Continue training after a change of the config, such as more epochs (then
repeat this command for the metrics):
    mmvidattn train {config} --resume --work-dir {run}''')
