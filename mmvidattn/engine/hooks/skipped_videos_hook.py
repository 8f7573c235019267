# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Guards the datasets of a run, and counts what training had to leave out."""
import re
import tempfile
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

from mmaction.registry import HOOKS
from mmengine.dist import all_gather_object, is_main_process
from mmengine.hooks import Hook
from mmengine.runner import Runner
from mmengine.runner.base_loop import BaseLoop

from ...datasets.guard import guard, read_note
from ...utils.checkpoint import write_text

MAX_NAMES = 20
KEY = 'skipped_videos'
CRASHED = 'crashed_videos.txt'
# How torch tells of a dead worker, and the signals of its own fault.
DEAD_WORKER = re.compile(r'DataLoader worker \(pid(?:\(s\))? ([\d, ]+)\)')
FAULT = re.compile(r'killed by signal: (Segmentation fault|Aborted|Illegal '
                   r'instruction|Floating point exception)')


@HOOKS.register_module()
class SkippedVideosHook(Hook):
    """Keep training when a video cannot be read, and tell which these are.

    Guards each dataset of mmaction2 that a loop uses, unless it has a guard
    of its own, see :class:`mmvidattn.datasets.guard.Guard`. It counts the
    ``skipped_videos`` that these leave in the meta information of their
    samples, over all workers and ranks, and goes on counting when a run is
    resumed. The counts are logged at the end of training, and written after
    each epoch to ``skipped_videos.txt`` in the work directory (count, path
    and error in each line, apart by tabs).

    A video that crashes its decoder, and with it the worker that reads it,
    ends the run with an error that names it. It is then listed in
    ``crashed_videos.txt``, and a resumed run takes it for unreadable.

    Args:
        max_failures: How often in a row a worker may fail to load a sample
            before the run stops.
        timeout: Seconds that a sample may take; None for any number.
        in_test: What an unreadable video does in validation and test:
            ``'raise'``, or ``'flag'``, which puts zeros in its place and
            ``unreadable`` in the meta information of its result.
    """
    # Ahead of the hook that starts the workers.
    priority = 'NORMAL'

    def __init__(self, max_failures: int = 10, timeout: float | None = 60.,
                 in_test: str = 'raise') -> None:
        if in_test not in ('raise', 'flag'):
            raise ValueError(
                f"in_test must be 'raise' or 'flag', got {in_test!r}")
        self.options = dict(max_failures=max_failures, timeout=timeout)
        self.in_test = in_test
        self._resumed: list = []
        self._saved: list | None = None
        # The folder where workers note what they read, while a loop runs.
        self._notes: str | None = None

    def before_run(self, runner: Runner) -> None:
        for loop in runner._train_loop, runner._val_loop, runner._test_loop:
            if isinstance(loop, BaseLoop):
                loop.run = self._telling(runner, loop.run)

    def after_run(self, runner: Runner) -> None:
        for loop in runner._train_loop, runner._val_loop, runner._test_loop:
            if isinstance(loop, BaseLoop):
                vars(loop).pop('run', None)

    def before_train(self, runner: Runner) -> None:
        self._guard(runner, runner.train_dataloader, 'skip')
        self.counts: Counter[str] = Counter()
        self.reasons: dict[str, str] = {}
        if is_main_process():
            for name, count, reason in self._resumed:
                self.counts[name] = count
                self.reasons[name] = reason
        self._resumed = []

    def before_val(self, runner: Runner) -> None:
        self._guard(runner, runner.val_dataloader, self.in_test)

    def before_test(self, runner: Runner) -> None:
        self._guard(runner, runner.test_dataloader, self.in_test)

    def after_train_iter(self, runner: Runner, batch_idx: int,
                         data_batch: Any = None,
                         outputs: dict | None = None) -> None:
        samples = data_batch.get('data_samples') if isinstance(
            data_batch, dict) else None
        for sample in samples or ():
            metainfo = getattr(sample, 'metainfo', {})
            self.counts.update(metainfo.get('skipped_videos', ()))
            self.reasons.update(metainfo.get('skipped_reasons', {}))

    def before_save_on_all_ranks(self, runner: Runner) -> None:
        self._saved = self._gather()

    def before_save_checkpoint(self, runner: Runner,
                               checkpoint: dict) -> None:
        saved, self._saved = self._saved, None
        if 'optimizer' in checkpoint and hasattr(self, 'counts'):
            checkpoint[KEY] = self._rows() if saved is None else saved

    def after_load_checkpoint(self, runner: Runner, checkpoint: dict) -> None:
        if getattr(runner, '_resume', False):
            self._resumed = checkpoint.get(KEY, [])

    def after_train_epoch(self, runner: Runner) -> None:
        rows = self._gather()
        if not rows or not is_main_process():
            return
        text = ''.join(f'{count}\t{name}\t{reason}\n'
                       for name, count, reason in rows)
        try:
            write_text(Path(runner.work_dir, 'skipped_videos.txt'), text)
        except OSError as error:
            runner.logger.error(f'cannot write skipped_videos.txt: {error}')

    def after_train(self, runner: Runner) -> None:
        rows = self._gather()
        if not rows:
            return
        names = [f'{name} ({count})' for name, count, _ in rows[:MAX_NAMES]]
        if len(rows) > MAX_NAMES:
            names.append('...')
        runner.logger.warning(
            f'{len(rows)} unreadable videos were skipped, '
            f'{sum(count for _, count, _ in rows)} times in all: '
            f'{", ".join(names)}')

    def _guard(self, runner: Runner, loader: Any, on_error: str) -> None:
        crashed = Path(runner.work_dir, CRASHED)
        names = crashed.read_text('utf-8').splitlines() if (
            runner._resume and crashed.is_file()) else ()
        guard(loader.dataset, on_error=on_error, notes=self._notes,
              given_up=dict.fromkeys(names, 'it crashed its decoder'),
              **self.options)

    def _telling(self, runner: Runner, run: Callable) -> Callable:
        """The ``run`` of a loop, whose error says what a dead worker read."""

        def run_and_tell(*args: Any, **kwargs: Any) -> Any:
            if self._notes is not None:
                # Validation, within training.
                return run(*args, **kwargs)
            with tempfile.TemporaryDirectory(
                    ignore_cleanup_errors=True) as self._notes:
                try:
                    return run(*args, **kwargs)
                except RuntimeError as error:
                    message = self._crash(runner, error)
                    if message is None:
                        raise
                    raise RuntimeError(message) from error
                finally:
                    self._notes = None

        return run_and_tell

    def _crash(self, runner: Runner, error: RuntimeError) -> str | None:
        # torch tells the signal and the process in either of two errors.
        said = f'{error} {error.__context__}'
        pids = ', '.join(DEAD_WORKER.findall(said))
        names = sorted({read_note(self._notes, int(pid))
                        for pid in re.findall(r'\d+', pids)} - {''})
        if not names:
            return None
        told = ', '.join(names)
        fault = FAULT.search(said)
        if fault is None:
            return (f'a process that loads data ended while it read {told}: '
                    f'{error}')
        path = Path(runner.work_dir, CRASHED)
        with path.open('a', encoding='utf-8') as file:
            file.writelines(f'{name}\n' for name in names)
        return (f'{told} crashed its decoder ({fault[1]}), and with it a '
                f'process that loads data. It is listed in {path}; --resume '
                'goes on without it')

    def _rows(self) -> list[list]:
        return [[name, count, self.reasons.get(name, '')]
                for name, count in self.counts.most_common()]

    def _gather(self) -> list[list]:
        """Name, count and error of each file over all ranks."""
        counts, reasons = Counter(), {}
        for rows in all_gather_object(self._rows()):
            for name, count, reason in rows:
                counts[name] += count
                reasons[name] = reason
        return [[name, count, reasons[name]]
                for name, count in counts.most_common()]
