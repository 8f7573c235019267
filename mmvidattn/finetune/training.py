# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Training and test of a run: schedule, files and console output."""
import json
import math
import os
import sys
import time
from collections import defaultdict
from collections.abc import Container, Iterator, Sequence
from contextlib import contextmanager, redirect_stdout, suppress
from pathlib import Path
from statistics import fmean
from typing import Any

import torch
from mmengine.config import Config
from mmengine.hooks import Hook
from mmengine.runner import Runner

from ..apis.build_runner import add_default_runtime, build_runner
from ..apis.bundle import SUFFIXES, save_release
from ..apis.bundle_file import WEIGHTS, is_bundle
from ..apis.config import KNOWN_KEYS, load_config
from ..apis.models import DEFAULT, find_default, get_model
from ..engine import NewClassifierHook
from ..engine.hooks import find_hook
from ..utils.checkpoint import find_resumable
from ..utils.files import write_atomically
from .time_limit import MAX_VALIDATIONS, WARMUP, TimeLimitHook

# File with the options of the run, written when the training begins.
NOTES = 'finetune.json'
BUNDLE = 'bundle'
# Metrics of the validation, and their names.
METRICS = {'acc/top1': 'top-1', 'acc/mean_average_precision': 'mAP',
           'online/mAP_stream': 'mAP of frames',
           'online/mAP_non_overlapping': 'mAP of frames'}
MAX_LINES = 100
# Seconds between two updates of the line in a terminal.
INTERVAL = 0.2


def read_notes(out: Path) -> dict[str, Any]:
    """Read ``finetune.json`` of a work directory.

    Raises:
        ValueError: If the file was not written by ``mmvidattn finetune``.
    """
    try:
        notes = json.loads((out / NOTES).read_text('utf-8'))
        return notes | dict(options=dict(notes['options']))
    except (ValueError, KeyError, TypeError):
        raise ValueError(f'{out / NOTES} was not written by mmvidattn '
                         'finetune: choose another --work-dir') from None


def find_start(weights: Path | str | None, model: str) -> Path | str | None:
    """Return the start weights of a model: a file, ``'default'`` or None.

    Raises:
        ValueError: If the package lacks weights of the model that it should
            have, or if the weights are a bundle.
    """
    if is_bundle(weights):
        raise ValueError(
            f'--weights {weights} is a bundle: give its {WEIGHTS} as --weights'
            ', and the config of this model as --model')
    if str(weights) == 'auto':
        with suppress(ValueError, FileNotFoundError):
            find_default(model)
            return DEFAULT
    if str(weights) == DEFAULT:
        find_default(model)
    return None if str(weights) in ('auto', 'none', 'None') else weights


def load_run_config(out: Path, work_dir: Path) -> Config:
    """Load the config of a run, for another folder of logs."""
    cfg = load_config(out / 'config.py')
    cfg.work_dir = str(work_dir)
    cfg.console_log_level = 'WARNING'
    return cfg


def save_best(out: Path) -> Path:
    """Write ``best.pth`` and ``best.safetensors``, the weights alone.

    They are of the returned checkpoint: the best, or else the last one.
    """
    best = max((out / 'run').glob('best_*.pth'), default=None,
               key=lambda path: path.stat().st_mtime)
    best = best or find_resumable(out / 'run')[0]
    if best is None:
        raise ValueError(f'the training left no checkpoint in {out / "run"}')
    parts = {suffix: out / f'best{suffix}.part' for suffix in SUFFIXES}
    save_release(get_model(out / 'config.py', best), parts)
    for suffix, part in parts.items():
        os.replace(part, out / f'best{suffix}')
    return best


def used_splits(cfg: Config, splits: Container[str]
                ) -> Iterator[tuple[str, str]]:
    """Remove the loaders of empty splits, and yield the name of each other
    loader and of the split that it reads.
    """
    for split in 'train', 'val', 'test':
        # Without test videos, the test uses the validation videos.
        name = split if split in splits else 'val'
        if name in splits:
            yield split, name
        else:
            for part in 'cfg', 'dataloader', 'evaluator':
                cfg[f'{split}_{part}'] = None


def finish_config(cfg: Config, seed: int, save_best: str | None,
                  averages: Sequence[str] = ('loss', )) -> None:
    """Set the parts of a config that all kinds of runs share.

    A config of mmaction2 gets the hooks of this package. Variables that other
    values were computed from are removed, because an edit of them would have
    no effect.

    Args:
        cfg: Config to change in place.
        seed: Seed of the training.
        save_best: Metric of the best checkpoint; None keeps the last one.
        averages: Outputs of a step whose averages curves.png shows.
    """
    add_default_runtime(cfg)
    cfg.merge_from_dict(dict(
        # Each step, because the last epoch may end at any.
        default_hooks=dict(logger=dict(interval=1), checkpoint=dict(
            max_keep_ckpts=1, save_best=save_best, rule='greater')),
        log_processor=dict(custom_cfg=[
            dict(data_src=name, method_name='mean', window_size='epoch')
            for name in averages]),
        randomness=dict(seed=seed)))
    for name in {*cfg} - KNOWN_KEYS:
        cfg.pop(name)


def set_epochs(cfg: Config, epochs: int) -> None:
    """Set the length of the training and of its schedule."""
    interval = math.ceil(epochs / MAX_VALIDATIONS)
    cfg.train_cfg.update(max_epochs=epochs, val_interval=interval)
    cfg.param_scheduler[0].update(warmup=WARMUP * epochs, end=epochs)
    cfg.default_hooks.checkpoint.interval = interval


def write_config(out: Path, cfg: Config) -> None:
    """Write ``config.py``. A killed run leaves the old file or the new one."""
    # Config.dump empties the file before it formats the text for seconds.
    write_atomically(out / 'config.py', cfg.pretty_text)


def write_notes(out: Path, notes: dict[str, Any]) -> None:
    """Write ``finetune.json``."""
    write_atomically(out / NOTES, json.dumps(notes, indent=1))


@contextmanager
def no_prints() -> Iterator[None]:
    """Drop mmengine's prints, which its log file contains too."""
    with open(os.devnull, 'w') as null, redirect_stdout(null):
        yield


class ConsoleHook(Hook):
    """Print a line per epoch, which a terminal shows from its first step.

    Of more than ``MAX_LINES`` epochs, some are left out. The hook prints to
    the standard output of its creation, also inside of :func:`no_prints`.
    """
    # Run after the hooks that change the metrics.
    priority = 'LOWEST'

    def __init__(self) -> None:
        self.stream = sys.stdout
        self._text = ''
        self._drawn = 0.

    def before_train(self, runner: Runner) -> None:
        self._began, self._first = time.monotonic(), runner.iter
        # A run in a given time plans the number of steps itself.
        self._plan = find_hook(runner, TimeLimitHook) or runner
        hook = find_hook(runner, NewClassifierHook)
        if hook is not None and hook.note:
            self.stream.write(f'{hook.note}\n')

    def before_train_epoch(self, runner: Runner) -> None:
        if runner.epoch % math.ceil(self._plan.max_epochs / MAX_LINES) and (
                'validation' not in self._text):
            self._text = ''
        self.end_line()
        self._values: dict[str, list[float]] = defaultdict(list)

    def after_train_iter(self, runner: Runner, batch_idx: int,
                         data_batch: Any = None,
                         outputs: dict | None = None) -> None:
        for name in {'loss', 'top1_acc'} & outputs.keys():
            self._values[name].append(torch.as_tensor(outputs[name]).item())
        means = {name: fmean(x) for name, x in self._values.items()}
        done, number = runner.iter + 1, self._plan.max_epochs
        now = time.monotonic()
        self._text = f'epoch {runner.epoch + 1:{len(str(number))}}/{number}, '
        # The number of steps is not known at the first one.
        if done - self._first > 1:
            left = (now - self._began) / (done - self._first) * (
                self._plan.max_iters - done)
            self._text += f'{math.ceil(left)} s left, '
        self._text += f'loss {means["loss"]:.3f}'
        if 'top1_acc' in means:
            self._text += f', training top-1 {100 * means["top1_acc"]:.0f} %'
        if self.stream.isatty() and now - self._drawn >= INTERVAL:
            self._drawn = now
            self._draw()

    def after_val_epoch(self, runner: Runner,
                        metrics: dict | None = None) -> None:
        for name, title in METRICS.items():
            value = (metrics or {}).get(name)
            if value is not None and self._text:
                self._text += f', validation {title} {100 * value:.0f} %'

    def after_train(self, runner: Runner) -> None:
        self.end_line()

    def end_line(self) -> None:
        """Print the last epoch's line."""
        if self._text:
            self._draw()
            self.stream.write('\n')
            self.stream.flush()
        self._text = ''

    def _draw(self) -> None:
        # Overwrite the whole previous line.
        self.stream.write(f'\r{self._text:79}' if self.stream.isatty() else
                          self._text)
        self.stream.flush()


class _CollectHook(Hook):
    """Collect the samples of a test, in a single process."""

    def __init__(self) -> None:
        self.samples: list = []

    def after_test_iter(self, runner: Runner, batch_idx: int,
                        data_batch: Any = None,
                        outputs: Sequence | None = None) -> None:
        self.samples += outputs


def run_test(out: Path, split: str, **dataset: Any
             ) -> tuple[Runner, list, dict[str, float]]:
    """Test the best model of a work directory.

    ``split`` is the name of the folder of logs, and ``dataset`` has changes to
    the test's data set. Return the runner, the samples in the order of the
    data set, and the metrics.
    """
    cfg = load_run_config(out, out / f'run/{split}')
    cfg.load_from, cfg.resume = str(out / 'best.pth'), False
    cfg.test_dataloader.dataset.update(dataset)
    runner = build_runner(cfg, strict=True)
    hook = _CollectHook()
    runner.register_hook(hook)
    with no_prints():
        metrics = runner.test()
    return runner, hook.samples, metrics
