# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Fine-tune a model: prepare, train, test, and write results."""
import json
import shutil
from contextlib import ExitStack, suppress
from dataclasses import replace
from itertools import count as count_from
from pathlib import Path
from types import ModuleType

from mmengine.runner import Runner

from ..apis.models import load_config
from ..apis.runner import build_runner, leave, quick_exit, unsaved
from ..datasets.annotations.custom.labeled_videos import count
from ..utils.checkpoint import find_resumable
from ..utils.exits import one_line_errors, one_line_stop
from ..utils.files import write_atomically
from ..utils.lock import lock_folder
from ..utils.printable import echo
from . import clips, streams
from .options import FineTuneOptions
from .training import (
    NOTES,
    ConsoleHook,
    load_run_config,
    no_prints,
    read_notes,
)


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
            options = _kind(options).complete_options(options)
            if dry_run:
                _kind(options).prepare(options, command, dry_run)
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
                _kind(options).write_results(options.out)
    out = options.out
    names = ', '.join(sorted(path.name for path in out.glob('[!.]*')))
    echo(f'\n{out}: {names}\n\n{_kind(options).describe_use(out)}')
    leave('' if runner is None else unsaved(runner))


def _kind(options: FineTuneOptions) -> ModuleType:
    """Return the module that prepares a run and writes its results."""
    return streams if options.stream else clips


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
            notes = read_notes(out)
            if not _differences(options, notes) and not (
                    notes.get('done') and notes['videos'] != _kind(
                        options).count_entries(options)):
                return out


def _start(options: FineTuneOptions, command: str) -> Runner | None:
    """Build the training, or return None if it is complete."""
    out, notes = options.out, None
    if not (out / NOTES).is_file():
        if (out / 'run').exists():
            raise ValueError(f'{out / "run"} exists, but {out / NOTES} does '
                             'not: choose another --work-dir')
        notes = _kind(options).prepare(options, command)
    else:
        _check_resumable(options)
        if read_notes(out).get('done') == load_config(
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
    notes = read_notes(out) | dict(done=runner.max_epochs)
    write_atomically(out / NOTES, json.dumps(notes, indent=1))


def _check_resumable(options: FineTuneOptions) -> None:
    """Check that a work directory has the same options and videos.

    Raises:
        ValueError: If the options differ.
    """
    out = options.out
    notes = read_notes(out)
    differing = _differences(options, notes)
    if differing:
        raise ValueError(
            f'{out} was started with different options: '
            f'{"; ".join(differing)}. Repeat the old options and change '
            f'{out / "config.py"} instead, or choose another --work-dir')
    echo(f'{out}: resuming with its lists and its config')
    number = _kind(options).count_entries(options)
    if number != notes['videos']:
        noun = 'event' if options.stream else 'video'
        sources = ', '.join(map(str, options.sources))
        echo(f'note: {sources} had {count(notes["videos"], noun)}, now has '
             f'{number}, but the run keeps its lists. Choose another '
             '--work-dir to use all videos')


def _differences(options: FineTuneOptions, notes: dict) -> list[str]:
    """Describe the options that differ from an earlier run."""
    earlier = notes['options']
    return [f'{name} was {earlier.get(name)}, and now is {value}'
            for name, value in options.fixed().items()
            if earlier.get(name) != value]


def _build_training(out: Path) -> Runner:
    """Build the training; resume if there is a checkpoint."""
    cfg = load_run_config(out, out / 'run')
    if find_resumable(cfg.work_dir)[0]:
        cfg.resume, cfg.load_from = True, None
    runner = build_runner(cfg, False)
    # Build the training loop now, to find errors in the training set.
    runner.train_loop  # noqa: B018
    return runner
