# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Hook that writes complete checkpoints or none."""
import inspect
import logging
import math
import os
from collections import deque
from pathlib import Path
from typing import Any

from mmaction.registry import HOOKS
from mmengine.dist import broadcast_object_list, is_main_process
from mmengine.hooks import CheckpointHook
from mmengine.logging import print_log
from mmengine.runner import Runner

from ...utils.arguments import suggest_argument
from ...utils.checkpoint import check_opens
from ...utils.files import flush, write_atomically
from . import is_finite

# Checkpoint of a run that is stopped between two regular checkpoints.
INTERRUPTED = 'interrupted.pth'


@HOOKS.register_module()
class AtomicCheckpointHook(CheckpointHook):
    """mmengine's ``CheckpointHook``, safe against crashes and full disks.

    The hook writes a checkpoint under a temporary name, flushes it to the
    disk, checks that ``torch.load(weights_only=True)`` opens it, and renames
    it. It then writes the path to the file ``last_checkpoint``, and deletes
    the outdated checkpoint. Every file ``*.pth`` is therefore complete, at any
    moment. A model is not saved as the best one if its score or a weight is
    not finite.

    If a checkpoint cannot be written (full disk, missing permission), training
    continues. The log has an error that names the last complete checkpoint.

    The hook calls two methods of other hooks, if they exist:
    ``before_save_on_all_ranks(runner)`` in every process before saving
    (mmengine calls ``before_save_checkpoint`` only in the first process), and
    ``before_save_best(runner)`` after validation.

    Attributes:
        unsaved: Message about a checkpoint that could not be written; empty
            once a later one is written.
    """
    # Metrics that save_best='auto' maximizes, with two of this package.
    _default_greater_keys = [
        *CheckpointHook._default_greater_keys, 'mcAP', 'recall'
    ]
    unsaved = ''
    # Iteration of the last checkpoint.
    _saved: int | None = None

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        taken = inspect.signature(Runner.save_checkpoint).parameters
        suggest_argument(CheckpointHook, self.args.keys() - taken)
        suggest_argument(Runner.save_checkpoint, self.args)

    def before_train(self, runner: Runner) -> None:
        super().before_train(runner)
        self._saved, self.unsaved = None, ''
        # Remains if the run was killed before it could delete the file.
        self._remove(runner.message_hub.get_info('outdated_ckpt'))

    def save_interrupted(self, runner: Runner, epoch: int, iter: int) -> bool:
        """Save a run that is about to stop, unless it has just been saved.

        All processes must call this method.

        Args:
            runner: The runner.
            epoch: Number of complete epochs.
            iter: Number of complete iterations.

        Returns:
            True if there is a checkpoint of this iteration.
        """
        if self._saved == iter:
            return True
        saved = self._write(runner, INTERRUPTED, dict(epoch=epoch, iter=iter))
        if saved:
            self._point(runner, self._path(INTERRUPTED))
        return saved

    def _save_checkpoint_with_step(self, runner: Runner, step: int,
                                   meta: dict) -> None:
        name = self.filename_tmpl.format(step)
        path, outdated = self._path(name), None
        news = dict(last_ckpt=path)
        if self.max_keep_ckpts > 0:
            kept = [i for i in self.keep_ckpt_ids if i != step]
            if len(kept) == self.max_keep_ckpts:
                outdated = self._path(self.filename_tmpl.format(kept.pop(0)))
            news['keep_ckpt_ids'] = [*kept, step]
        news['outdated_ckpt'] = outdated
        if not self._write(runner, name, meta, news):
            self.unsaved = (f'{path} could not be saved; the last complete '
                            f'checkpoint is {self.last_ckpt or "none"}')
            return
        self.last_ckpt, self._saved, self.unsaved = path, meta['iter'], ''
        if self.max_keep_ckpts > 0:
            self.keep_ckpt_ids = deque(
                news['keep_ckpt_ids'], self.max_keep_ckpts)
        self._point(runner, path)
        self._remove(self._path(INTERRUPTED))
        self._remove(outdated)

    def _save_best_checkpoint(self, runner: Runner, metrics: dict) -> None:
        if not self.save_best:
            return
        runner.call_hook('before_save_best')
        if 'auto' in self.key_indicators:
            self._init_rule(self.rules, [next(iter(metrics))])
        meta = dict(epoch=runner.epoch, iter=runner.iter)
        time = runner.epoch if self.by_epoch else runner.iter
        hub, outdated, improved = runner.message_hub, [], False
        for key, rule in zip(self.key_indicators, self.rules):
            suffix = '' if len(self.key_indicators) == 1 else f'_{key}'
            if key not in metrics:
                raise ValueError(f'save_best={key!r} must be a metric of the '
                                 f'validation: {", ".join(metrics)}')
            score, best = metrics[key], hub.get_info(f'best_score{suffix}')
            if best is None:
                best = self.init_value_map[rule]
            if score is None or not self.is_better_than[key](score, best):
                continue
            name = f'best_{key}_{self.filename_tmpl.format(time)}'.replace(
                '/', '_')
            old, path = hub.get_info(f'best_ckpt{suffix}'), self._path(name)
            if not math.isfinite(score) or not is_finite(
                    runner.model.state_dict()):
                runner.logger.error(
                    f'{key} {score} is not saved as the best: the score or '
                    'weights of the model are not finite')
            elif self._write(runner, name, dict(meta), {
                    f'best_score{suffix}': score, f'best_ckpt{suffix}': path},
                    weights_only=True):
                improved = True
                outdated += [old] if old != path else []
                if suffix:
                    self.best_ckpt_path_dict[key] = path
                else:
                    self.best_ckpt_path = path
                runner.logger.info(
                    f'The best checkpoint, with {key} {score:.4f}, is {name}')
        if improved and self.last_ckpt is not None:
            # Save again, so that a resumed run knows the new best checkpoint.
            self._save_checkpoint_with_step(runner, time, meta)
        for path in outdated:
            self._remove(path)

    def _path(self, name: str) -> str:
        return self.file_backend.join_path(self.out_dir, name)

    def _remove(self, path: str | None) -> None:
        try:
            if path and is_main_process() and self.file_backend.isfile(path):
                self.file_backend.remove(path)
        except OSError as error:
            print_log(f'cannot remove {path}: {error}', 'current',
                      logging.ERROR)

    def _point(self, runner: Runner, path: str) -> None:
        try:
            if is_main_process():
                write_atomically(
                    Path(runner.work_dir, 'last_checkpoint'), path)
        except OSError as error:
            # Without last_checkpoint, a run resumes from the newest file.
            runner.logger.error(f'cannot write last_checkpoint: {error}')

    def _write(self, runner: Runner, name: str, meta: dict,
               news: dict | None = None, weights_only: bool = False) -> bool:
        """Write a checkpoint completely, or return False.

        All processes must call this method. The entries ``news`` of the
        message hub are part of the checkpoint, and stay if it is written.
        """
        runner.call_hook('before_save_on_all_ranks')
        hub, news, part = runner.message_hub, news or {}, f'{name}.part'
        before, saved = {key: hub.get_info(key) for key in news}, True
        hub.update_info_dict(news)
        try:
            runner.save_checkpoint(
                self.out_dir,
                part,
                self.file_client_args,
                save_optimizer=self.save_optimizer and not weights_only,
                save_param_scheduler=(
                    self.save_param_scheduler and not weights_only),
                meta=meta,
                by_epoch=self.by_epoch,
                backend_args=self.backend_args,
                **self.args)
            if is_main_process():
                self._finish(self._path(part), self._path(name))
        except (OSError, ValueError) as error:
            runner.logger.error(
                f'cannot save {name} in {self.out_dir}: {error}. The last '
                f'complete checkpoint is {self.last_ckpt or "none"}. Training '
                'continues, but will be lost unless disk space becomes free')
            self._remove(self._path(part))
            saved = False
        # Only the first process writes. Send the outcome to all processes.
        answer = [saved]
        broadcast_object_list(answer)
        if not answer[0]:
            hub.update_info_dict(before)
        return answer[0]

    def _finish(self, part: str, path: str) -> None:
        if '://' in path:
            # An object store writes a whole object or none.
            data = self.file_backend.get(part)
            check_opens(data)
            self.file_backend.put(data, path)
            self.file_backend.remove(part)
            return
        flush(part)
        check_opens(part)
        os.replace(part, path)
        flush(Path(path).parent)
