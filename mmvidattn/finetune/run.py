# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Fine-tune a model: prepare, train, test, and write results."""
import math
import shutil
import time
from contextlib import ExitStack, suppress
from dataclasses import replace
from itertools import count as count_from
from pathlib import Path
from types import ModuleType

from mmengine.config import Config
from mmengine.runner import Runner

from ..apis.build_runner import build_runner, unsaved_checkpoint
from ..apis.models import load_config
from ..engine.hooks import find_hook
from ..utils.checkpoint import find_resumable
from ..utils.exits import end_program, one_line_errors, one_line_stop
from ..utils.lock import lock_folder
from ..utils.printable import count, echo
from . import clips, streams, training
from .options import MAX_EPOCHS, MINUTES, FineTuneOptions
from .plan import Plan, make_plan, read_source
from .report import draw_curves
from .time_limit import TimeLimitHook, TooFewSteps

# A model learns little in fewer epochs or steps.
FEW_EPOCHS, FEW_STEPS = 10, 200
# Number of epochs that no run reaches in its time.
NO_LIMIT = 10**6


def finetune(options: FineTuneOptions, dry_run: bool, began: float) -> None:
    """Fine-tune a model, or resume, and write all results.

    With ``dry_run``, only check the videos and print the config. The command
    ``began`` at this time of ``time.monotonic``.
    """
    kind = streams if options.stream else clips
    with one_line_stop('; the same command continues', quick=True):
        with one_line_errors():
            options = kind.complete_options(options)
            if dry_run:
                _, cfg = _plan(options, kind)
                if options.epochs == 'auto':
                    echo('note: --epochs auto depends on the time that the '
                         'training takes')
                echo(f'\n{cfg.pretty_text}', end='')
                return
        options = replace(options, work_dir=_choose_folder(options))
        out = options.out
        with ExitStack() as locks:
            with one_line_errors():
                locks.enter_context(lock_folder(out))
                runner = _start(options, kind, began)
                # A user may also run `mmvidattn train` there.
                locks.enter_context(lock_folder(out / 'run'))
            if runner is not None:
                runner = _train(runner, options, began)
            with one_line_errors():
                checkpoint = training.save_best(out)
                echo(f'testing {checkpoint.name}')
                draw_curves(out, training.read_notes(out).get('chance'))
                kind.write_results(out, checkpoint.name)
    names = ', '.join(sorted(path.name for path in out.glob('[!.]*')))
    minutes, seconds = divmod(round(time.monotonic() - began), 60)
    echo(f'\n{out}, after {minutes} min {seconds} s: {names}\n\n'
         f'{kind.describe_use(out)}')
    end_program('' if runner is None else unsaved_checkpoint(runner))


def _plan(options: FineTuneOptions, kind: ModuleType) -> tuple[Plan, Config]:
    """Check the videos, and build the config."""
    cfg = kind.load_base(options)
    plan = make_plan(options)
    kind.set_config(cfg, options, plan)
    training.set_epochs(
        cfg, MAX_EPOCHS if options.epochs == 'auto' else options.epochs)
    return plan, cfg


def _prepare(options: FineTuneOptions, kind: ModuleType) -> None:
    """Check the videos, and write the lists, the config and the notes."""
    plan, cfg = _plan(options, kind)
    out = options.out
    plan.write_lists(out / 'data')
    kind.write_data(cfg, options, plan)
    training.write_config(out, cfg)
    training.write_notes(out, dict(
        options=options.fixed(), videos=plan.number, chance=plan.chance,
        seconds=plan.median_seconds, tests=plan.tests))


def _choose_folder(options: FineTuneOptions) -> Path:
    """Return the work directory of a run with equal options, or a free one.

    A finished run is not reused if the number of videos or --minutes has
    changed.
    """
    if options.work_dir is not None:
        return options.work_dir
    for number in count_from(1):
        out = options.out
        if number > 1:
            out = out.with_name(f'{out.name}_{number}')
        if not (out / training.NOTES).exists():
            if not (out / 'run').exists():
                return out
            continue
        with suppress(ValueError):
            notes = training.read_notes(out)
            if not _differences(options, notes) and not (
                    notes.get('done') and (
                        _has_other_time(options, notes)
                        or notes['videos'] != len(read_source(options)[1]))):
                return out


def _has_other_time(options: FineTuneOptions, notes: dict) -> bool:
    """Return True if a finished run had another time for its training."""
    return notes.get('minutes', options.minutes) != options.minutes


def _start(options: FineTuneOptions, kind: ModuleType,
           began: float) -> Runner | None:
    """Build the training, or return None if it is complete."""
    out, notes = options.out, options.out / training.NOTES
    is_new, min_steps = not notes.is_file(), 0
    if is_new:
        if (out / 'run').exists():
            raise ValueError(f'{out / "run"} exists, but {notes} does not: '
                             'choose another --work-dir')
        _prepare(options, kind)
        if options.stream and options.model == 'pixels':
            min_steps = streams.MIN_UPDATES
    else:
        earlier = _check_resumable(options)
        cfg = load_config(out / 'config.py')
        if earlier.get('done') == cfg.train_cfg.max_epochs:
            if _has_other_time(options, earlier):
                raise ValueError(f'the training in {out} is complete: choose '
                                 'another --work-dir for other --minutes')
            echo('the training is complete')
            return None
    try:
        return _build_training(options, began, min_steps)
    except (ValueError, TypeError):
        if is_new:
            # Remove the files, so that a corrected command can use the folder.
            shutil.rmtree(out / 'run', ignore_errors=True)
            notes.unlink()
        raise


def _train(runner: Runner, options: FineTuneOptions, began: float) -> Runner:
    """Train, and record in finetune.json that the training is complete.

    Return the runner, or the one that trained on smaller images.
    """
    out = options.out
    echo(f'{count(len(runner.train_dataloader), "step")} per epoch; full log: '
         f'{Path(runner.log_dir, runner.timestamp)}.log')
    console, steps = training.ConsoleHook(), None
    runner.register_hook(console)
    try:
        with training.no_prints():
            runner.train()
    except TooFewSteps as error:
        steps, = error.args
        runner.call_hook('after_train')
    finally:
        console.end_line()
    if steps is not None:
        streams.reduce_images(out, steps)
        return _train(_build_training(options, began), options, began)
    time_limit = find_hook(runner, TimeLimitHook)
    epochs = (time_limit or runner).max_epochs
    if runner.epoch < epochs:
        echo(f'stopped early after epoch {runner.epoch}: the training set is '
             'learned, and the validation does not improve')
    elif time_limit is not None and epochs < time_limit.limit:
        lacking = max(FEW_STEPS, FEW_EPOCHS * len(
            runner.train_dataloader)) - runner.iter
        # A model that makes no error needs no more.
        scalars = runner.message_hub.log_scalars
        if lacking > 0 and all(
                scalars[f'val/{name}'].current() < 1
                for name in training.METRICS if f'val/{name}' in scalars):
            minutes = math.ceil((options.minutes or MINUTES)
                                + lacking * time_limit.step / 60)
            echo(f'note: {count(runner.iter, "step")} fit into the time, '
                 f'fewer than usual; for more, --minutes {minutes}')
    cfg = load_config(out / 'config.py')
    if cfg.train_cfg.max_epochs != epochs:
        training.set_epochs(cfg, epochs)
        training.write_config(out, cfg)
    training.write_notes(out, training.read_notes(out) | dict(
        done=epochs, minutes=options.minutes))
    return runner


def _check_resumable(options: FineTuneOptions) -> dict:
    """Check that a work directory has the same options; return its notes.

    Raises:
        ValueError: If the options differ.
    """
    out = options.out
    notes = training.read_notes(out)
    differing = _differences(options, notes)
    if differing:
        raise ValueError(
            f'{out} was started with different options: '
            f'{"; ".join(differing)}. Repeat the old options and change '
            f'{out / "config.py"} instead, or choose another --work-dir')
    echo(f'{out}: resuming with its lists and its config')
    number = len(read_source(options)[1])
    if number != notes['videos']:
        noun = 'event' if options.stream else 'video'
        sources = ', '.join(map(str, options.sources))
        echo(f'note: {sources} had {count(notes["videos"], noun)}, now has '
             f'{number}, but the run keeps its lists. Choose another '
             '--work-dir to use all videos')
    return notes


def _differences(options: FineTuneOptions, notes: dict) -> list[str]:
    """Describe the options that differ from an earlier run."""
    earlier = notes['options']
    return [f'{name} was {earlier.get(name)}, and now is {value}'
            for name, value in options.fixed().items()
            if earlier.get(name) != value]


def _build_training(options: FineTuneOptions, began: float,
                    min_steps: int = 0) -> Runner:
    """Build the training; resume if there is a checkpoint."""
    out = options.out
    cfg = training.load_run_config(out, out / 'run')
    if find_resumable(cfg.work_dir)[0]:
        cfg.resume, cfg.load_from = True, None
    if options.epochs == 'auto' and options.minutes:
        # A hook ends the training.
        cfg.train_cfg.max_epochs = NO_LIMIT
    runner = build_runner(cfg, strict=False)
    # Build the training loop now, to find errors in the training set.
    runner.train_loop  # noqa: B018
    if options.epochs == 'auto' or options.minutes:
        runner.register_hook(TimeLimitHook(
            began, 60 * (options.minutes or MINUTES),
            training.read_notes(out).get('tests', 1.),
            cfg.train_cfg.max_epochs, min_steps))
    return runner
