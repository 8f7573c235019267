# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Checkpoints that a kill, a full disk or a bad sector cannot take away."""
import logging
import math
import os
import shutil
from collections import deque
from pathlib import Path
from typing import Any

import torch
from mmaction.registry import HOOKS
from mmengine.dist import broadcast_object_list, is_main_process
from mmengine.hooks import CheckpointHook
from mmengine.logging import print_log
from mmengine.runner import Runner

from ...utils.checkpoint import check_opens
from ...utils.files import flush, write_atomically
from ...utils.plain import restore_histories, to_plain
from ..first_fault import is_finite

# The name of what is written when a run is stopped between two checkpoints.
INTERRUPTED = 'interrupted.pth'
# What EMAHook and the model save consists of tensors already.
TENSORS = 'state_dict', 'ema_state_dict'


@HOOKS.register_module()
class SafeCheckpointHook(CheckpointHook):
    """mmengine's ``CheckpointHook``, of which nothing can be lost.

    A checkpoint is written beside its place, flushed, opened, and then
    renamed; the pointer ``last_checkpoint`` follows, and the file that it
    replaces goes last. At every moment the newest ``.pth`` file opens.

    It holds tensors and plain types only, so that any program reads it with
    ``torch.load(weights_only=True)``.

    If it cannot be written (a full disk, a folder without permission), the
    error is logged with the name of the last checkpoint that is whole, and
    training goes on; ``unsaved`` says so until a later one is written.

    A score, or a model, that is not finite never becomes the best one.

    Just before it saves it calls ``before_save_on_all_ranks(runner)`` of all
    hooks that have it, in every process (``before_save_checkpoint`` runs in
    the first process alone), and ``before_save_best(runner)`` when validation
    is done.

    Args: those of ``CheckpointHook``.
    """
    # What save_best='auto' takes for better where it is greater: also the
    # metrics of this package.
    _default_greater_keys = [
        *CheckpointHook._default_greater_keys, 'mcAP', 'recall'
    ]

    def before_train(self, runner: Runner) -> None:
        super().before_train(runner)
        # The iteration of the last checkpoint.
        self._saved: int | None = None
        self.unsaved = ''
        # A kill may have come between a pointer and the file to go last.
        self._remove(runner.message_hub.get_info('outdated_ckpt'))

    def before_save_checkpoint(self, runner: Runner,
                               checkpoint: dict) -> None:
        for key in checkpoint.keys() - set(TENSORS):
            checkpoint[key] = to_plain(checkpoint[key], key)

    def after_load_checkpoint(self, runner: Runner, checkpoint: dict) -> None:
        if 'message_hub' in checkpoint:
            hub = checkpoint['message_hub']
            hub['log_scalars'] = restore_histories(hub['log_scalars'])

    def save_interrupted(self, runner: Runner, epoch: int, iter: int) -> bool:
        """Save a run that stops here, unless its last checkpoint is of here.

        All processes must call it.

        Args:
            runner: The runner.
            epoch: Number of epochs that are finished.
            iter: Number of iterations that are finished.

        Returns:
            Whether there is such a checkpoint.
        """
        if self._saved == iter:
            return True
        meta = dict(epoch=epoch, iter=iter)
        saved = self._write(runner, INTERRUPTED, meta=meta)
        if saved and is_main_process():
            self._point(runner, self._path(INTERRUPTED))
        return saved

    def _save_checkpoint_with_step(self, runner: Runner, step: int,
                                   meta: dict) -> None:
        hub, before = runner.message_hub, {}

        def note(key: str, value: Any) -> None:
            before[key] = hub.get_info(key)
            hub.update_info(key, value)

        name = self.filename_tmpl.format(step)
        path, outdated = self._path(name), None
        kept = None
        if self.max_keep_ckpts > 0:
            kept = deque(self.keep_ckpt_ids)
            if not kept or kept[-1] != step:
                if len(kept) == self.max_keep_ckpts:
                    outdated = self._path(
                        self.filename_tmpl.format(kept.popleft()))
                kept.append(step)
            note('keep_ckpt_ids', list(kept))
        note('last_ckpt', path)
        note('outdated_ckpt', outdated)
        if not self._write(runner, name, meta=meta):
            kept = self.last_ckpt or 'none'
            self.unsaved = (f'{path} could not be saved; the last whole '
                            f'checkpoint is {kept}')
            for key, value in before.items():
                hub.update_info(key, value)
                if value is None:
                    hub.pop_info(key)
            return
        self.last_ckpt, self._saved = path, meta['iter']
        self.unsaved = ''
        if kept is not None:
            self.keep_ckpt_ids = deque(kept, self.max_keep_ckpts)
        if is_main_process():
            self._point(runner, path)
            self._remove(self._path(INTERRUPTED))
            self._remove(outdated)

    def _save_best_checkpoint(self, runner: Runner, metrics: dict) -> None:
        if not self.save_best:
            return
        runner.call_hook('before_save_best')
        hub = runner.message_hub
        time = runner.epoch if self.by_epoch else runner.iter
        meta = dict(epoch=runner.epoch, iter=runner.iter)
        if 'auto' in self.key_indicators:
            self._init_rule(self.rules, [next(iter(metrics))])
        outdated, improved = [], False
        for key, rule in zip(self.key_indicators, self.rules):
            suffix = '' if len(self.key_indicators) == 1 else f'_{key}'
            score, best = metrics[key], hub.get_info(f'best_score{suffix}')
            if best is None:
                best = self.init_value_map[rule]
            if score is None or not self.is_better_than[key](score, best):
                continue
            if not math.isfinite(score) or not self._is_finite(runner):
                runner.logger.error(
                    f'{key} {score} is not saved as the best: '
                    + ('weights of the model are not finite'
                       if math.isfinite(score) else 'it is not finite'))
                continue
            name = f'best_{key}_{self.filename_tmpl.format(time)}'.replace(
                '/', '_')
            if not self._write(
                    runner, name, meta=dict(meta), save_optimizer=False,
                    save_param_scheduler=False):
                continue
            improved = True
            old, path = hub.get_info(f'best_ckpt{suffix}'), self._path(name)
            if old != path:
                outdated.append(old)
            hub.update_info(f'best_score{suffix}', score)
            hub.update_info(f'best_ckpt{suffix}', path)
            if suffix:
                self.best_ckpt_path_dict[key] = path
            else:
                self.best_ckpt_path = path
            runner.logger.info(f'The best checkpoint, with {key} {score:.4f}, '
                               f'is {name}')
        if improved and self.last_ckpt is not None:
            # So that a resumed run knows of the best one.
            self._save_checkpoint_with_step(runner, time, meta)
        for path in outdated:
            self._remove(path)

    def _is_finite(self, runner: Runner) -> bool:
        """Return True if all weights of the first process are finite."""
        answer = [is_finite(runner.model.state_dict())]
        broadcast_object_list(answer)
        return answer[0]

    def _path(self, name: str) -> str:
        return self.file_backend.join_path(self.out_dir, name)

    def _remove(self, path: str | None) -> None:
        if not path or not is_main_process():
            return
        try:
            if self.file_backend.isfile(path):
                self.file_backend.remove(path)
        except OSError as error:
            print_log(f'cannot remove {path}: {error}', 'current',
                      logging.ERROR)

    def _point(self, runner: Runner, path: str) -> None:
        try:
            write_atomically(
                Path(runner.work_dir, 'last_checkpoint'), path)
        except OSError as error:
            # To resume takes the newest file that opens in any case.
            runner.logger.error(f'cannot write last_checkpoint: {error}')

    def _write(self, runner: Runner, name: str, *, meta: dict,
               save_optimizer: bool | None = None,
               save_param_scheduler: bool | None = None) -> bool:
        """Write a checkpoint of this name or none; all processes call it."""
        if save_optimizer is None:
            save_optimizer = self.save_optimizer
        if save_param_scheduler is None:
            save_param_scheduler = self.save_param_scheduler
        runner.call_hook('before_save_on_all_ranks')
        part, saved = f'{name}.part', True
        try:
            runner.save_checkpoint(
                self.out_dir,
                part,
                self.file_client_args,
                save_optimizer=save_optimizer,
                save_param_scheduler=save_param_scheduler,
                meta=meta,
                by_epoch=self.by_epoch,
                backend_args=self.backend_args,
                **self.args)
            if is_main_process():
                self._finish(self._path(part), self._path(name))
        except (OSError, ValueError) as error:
            runner.logger.error(self._why(runner, name, error))
            self._remove(self._path(part))
            saved = False
        # Only the first process writes, and all must go on alike.
        answer = [saved]
        broadcast_object_list(answer)
        return answer[0]

    def _finish(self, part: str, path: str) -> None:
        if '://' not in path:
            flush(part)
            check_opens(part)
            os.replace(part, path)
            flush(Path(path).parent)
        else:
            # An object store puts a whole object or none.
            data = self.file_backend.get(part)
            check_opens(data)
            self.file_backend.put(data, path)
            self.file_backend.remove(part)

    def _why(self, runner: Runner, name: str, error: Exception) -> str:
        needed = sum(
            x.numel() * x.element_size()
            for x in runner.model.state_dict().values() if torch.is_tensor(x))
        try:
            free = f'{shutil.disk_usage(self.out_dir).free / 2**20:.0f} MiB'
        except OSError:
            free = 'an unknown amount'
        kept = (f'The last whole checkpoint is {self.last_ckpt}'
                if self.last_ckpt else 'There is no earlier checkpoint')
        return (f'cannot save {name} in {self.out_dir}: {error} ({free} '
                f'free there; the weights alone are {needed / 2**20:.0f} '
                f'MiB). {kept}. Training goes on; make room, or it will be '
                'lost')
