# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Fine-tuning run: preparation, training, test and results."""
import json
import os
import shlex
import shutil
from pathlib import Path

from mmengine.config import Config
from mmengine.runner import Runner

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
from ..datasets.annotations.custom.labeled_videos import (
    count,
    read_labeled_videos,
)
from ..utils.checkpoint import find_resumable, is_url, read_checkpoint
from ..utils.files import write_atomically
from ..utils.printable import echo
from .config import build_config, format_config, load_base
from .epochs import fit_epochs
from .options import FineTuneOptions
from .plan import make_plan
from .report import Answer, CollectAnswersHook, write_curves, write_report

# File with the options of the run, written when the training begins.
NOTES = 'finetune.json'


def finetune(options: FineTuneOptions, command: str,
             dry_run: bool = False) -> None:
    """Fine-tune a model, or resume, and write all results.

    Args:
        options: Options of the run.
        command: Command line, for the header of the config.
        dry_run: Whether to only check the videos and print the config.
    """
    out = options.out
    config, notes = out / 'config.py', None
    with one_line_errors():
        _check_weights(options.weights)
        if dry_run or not (out / NOTES).is_file():
            notes = _prepare(options, command, dry_run)
        else:
            _check_resumable(options)
        if dry_run:
            return
        try:
            runner = _build_training(config, out)
        except (ValueError, TypeError):
            if notes is not None:
                # Let a corrected command use the same folder.
                shutil.rmtree(out / 'run', ignore_errors=True)
            raise
        if notes is not None:
            write_atomically(out / NOTES, json.dumps(notes, indent=1).encode())
    with quick_exit():
        runner.train()
    with one_line_errors():
        _write_results(config, out)
    _print_next_steps(out)
    leave(unsaved(runner))


def _check_weights(weights: Path | None) -> None:
    """Raise unless the checkpoint is a local file that opens safely."""
    if weights is None:
        echo('note: without --weights, training starts from random weights')
    elif is_url(str(weights).replace(':/', '://')):
        raise ValueError(f'--weights must be a local file, got {weights}: '
                         'download it first')
    else:
        read_checkpoint(weights)


def _prepare(options: FineTuneOptions, command: str, dry_run: bool) -> dict:
    """Check the videos, and write the lists and the config.

    Returns:
        Contents of ``finetune.json``, to be written when training begins.
    """
    out, source = options.out, options.source
    load_base(options.model)
    if (out / 'run').exists():
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
        epochs, seconds = fit_epochs(load_config(config), options.minutes)
        echo(f'{count(epochs, "epoch")} of about {seconds:.1f} s')
        cfg = build_config(options, plan, epochs)
        write_atomically(config, format_config(cfg, command).encode())
    return dict(options=options.fixed(), videos=plan.number)


def _check_resumable(options: FineTuneOptions) -> None:
    """Check that a work directory has the same options and videos.

    Raises:
        ValueError: If the options differ.
    """
    out, source = options.out, options.source
    try:
        notes = json.loads((out / NOTES).read_text('utf-8'))
        found = {**options.ADDED, **notes['options']}
    except (ValueError, KeyError):
        raise ValueError(f'{out / NOTES} was not written by mmvidattn '
                         'finetune: choose another --work-dir') from None
    differing = [f'{name} was {found.get(name)}, and now is {value}'
                 for name, value in options.fixed().items()
                 if found.get(name) != value]
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


def _build_training(config: Path, out: Path) -> Runner:
    """Build the training, which resumes from the last checkpoint."""
    cfg = _load(config, out / 'run')
    if find_resumable(cfg.work_dir)[0]:
        cfg.resume, cfg.load_from = True, None
    runner = build_runner(cfg, False)
    # Build the training set now, to check it.
    runner.train_loop  # noqa: B018
    return runner


def _load(config: Path, work_dir: Path) -> Config:
    cfg = load_config(config)
    cfg.work_dir = str(work_dir)
    return cfg


def _find_best(out: Path) -> Path:
    """Return the best checkpoint of the training, or else the last one."""
    best = sorted((out / 'run').glob('best_*.pth'),
                  key=lambda path: path.stat().st_mtime)
    found = best[-1] if best else find_resumable(out / 'run')[0]
    if found is None:
        raise ValueError(f'the training left no checkpoint in {out / "run"}')
    return found


def _test(config: Path, out: Path) -> list[Answer]:
    """Return the best model's answers to the test videos."""
    cfg = _load(config, out / 'run/test')
    cfg.load_from, cfg.resume = str(out / 'best.pth'), False
    runner = build_runner(cfg, True)
    hook = CollectAnswersHook()
    runner.register_hook(hook)
    runner.test()
    return hook.answers


def _write_results(config: Path, out: Path) -> None:
    """Write the weights, the metrics and the images."""
    cfg = load_config(config)
    best = _find_best(out)
    model = get_model(config, best)
    parts = {suffix: out / f'best{suffix}.part' for suffix in SUFFIXES}
    save_release(model, cfg, parts)
    for suffix, part in parts.items():
        os.replace(part, out / f'best{suffix}')
    write_curves(out, out / 'run')
    if cfg.get('test_dataloader') is None:
        echo('note: metrics and mistakes.png need test videos, and there are '
             'none')
        return
    classes = read_labels(cfg.test_dataloader.dataset.metainfo.classes)
    echo(write_report(out, _test(config, out), classes, Path(cfg.videos),
                      checkpoint=best.name))


def _print_next_steps(out: Path) -> None:
    config, weights, run = (
        shlex.quote(str(out / name))
        for name in ('config.py', 'best.pth', 'run'))
    echo(f'''
{out}: {", ".join(sorted(path.name for path in out.iterdir()))}

Predict:
    mmvidattn predict VIDEO_OR_FOLDER {config} {weights}
Continue training after a change of the config, such as more epochs (then
repeat this command for the metrics):
    mmvidattn train {config} --resume --work-dir {run}
Detect live, with an online detector trained on features of this model
(mmvidattn extract-features; configs/testra):
    mmvidattn stream 0 testra_tiny_videos DETECTOR --rgb {config} {weights}''')
