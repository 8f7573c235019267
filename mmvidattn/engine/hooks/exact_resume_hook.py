# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""A run that is resumed goes on as if it had never stopped."""
import difflib
import platform
from typing import Any

import mmaction
import mmengine
import numpy as np
import torch
from mmaction.registry import HOOKS
from mmengine.dist import all_gather_object, get_rank, get_world_size
from mmengine.hooks import Hook
from mmengine.model import is_model_wrapper
from mmengine.runner import EpochBasedTrainLoop, IterBasedTrainLoop, Runner
from mmengine.runner.loops import _InfiniteDataloaderIterator

from ...utils.random_state import get_random_state, set_random_state
from ...version import __version__
from ..seeded_samples import seed_samples

KEY = 'exact_resume'
# What two halves of one run may differ in.
IGNORED = 'resume', 'load_from', 'work_dir', 'launcher', 'log_level'
MAX_LINES = 12


class _AdvancedIterator(_InfiniteDataloaderIterator):
    """Data for an IterBasedTrainLoop that has done some iterations.

    Such a loop throws away as many batches as it has used; here these are
    not loaded at all.
    """

    def __init__(self, dataloader: Any, done: int, epoch: int) -> None:
        super().__init__(dataloader)
        self._epoch = epoch
        self._to_throw_away = done

    def __next__(self) -> Any:
        if self._to_throw_away:
            self._to_throw_away -= 1
            return None
        return super().__next__()


@HOOKS.register_module()
class ExactResumeHook(Hook):
    """Save and restore what mmengine's checkpoints leave out.

    These are the generators of Python, numpy and torch, of each process and
    device; how far the data of an epoch have been used; gradients that are
    being accumulated; and whether the validation after the epoch has been
    done (if not, it is made up for). On a CPU a resumed run ends bit-equal to
    one that was never stopped, whether it goes on between two epochs or
    within one.

    To that end what is drawn for a sample depends on its place in the run,
    see :func:`mmvidattn.engine.seeded_samples.seed_samples`, and validation
    changes no generator. A ``collate_fn`` that draws is not covered.

    A checkpoint of another number of processes, another config or other
    versions is resumed as well as can be, with a warning that says what
    differs.

    Needs :class:`SafeCheckpointHook` to save the generators of more than one
    process. Within an epoch it knows mmengine's two training loops; with any
    other it says that it resumes from the last whole epoch only.
    """
    # The generators are restored when all else has been prepared.
    priority = 'LOWEST'

    def __init__(self) -> None:
        self._resumed: dict | None = None
        self._random: dict | None = None
        self._ranks: list | None = None
        self._order = None
        self._in_val: dict | None = None
        self._validated: tuple[int, int] | None = None
        # Epoch, and the iteration that it began with.
        self._began = (0, 0)

    # Saving

    def before_save_on_all_ranks(self, runner: Runner) -> None:
        self._ranks = all_gather_object(self._state(runner))

    def before_save_checkpoint(self, runner: Runner,
                               checkpoint: dict) -> None:
        ranks, self._ranks = self._ranks, None
        if 'optimizer' not in checkpoint:
            return
        meta = checkpoint['meta']
        at = (meta['epoch'], meta['iter'])
        checkpoint[KEY] = dict(
            ranks=ranks or [self._state(runner)],
            world_size=get_world_size(),
            batch=self._batch(runner, *at),
            num_batches=len(runner.train_dataloader),
            validated=at == self._validated,
            versions=_versions(),
            gradients=self._gradients(runner, meta['iter']))

    def _state(self, runner: Runner) -> dict:
        state = self._in_val or get_random_state()
        loader = runner.train_dataloader
        return dict(
            random=state,
            seed=self._order.seed if self._order else runner.seed,
            sampler_seed=getattr(_sampler(loader), 'seed', None))

    def _batch(self, runner: Runner, epoch: int, iter: int) -> int:
        if isinstance(runner.train_loop, IterBasedTrainLoop):
            return iter
        return iter - self._began[1] if epoch == self._began[0] else 0

    @staticmethod
    def _gradients(runner: Runner, iter: int) -> dict:
        counts = getattr(runner.optim_wrapper, '_accumulative_counts', 1)
        if iter % counts == 0 or iter == runner.max_iters:
            return {}
        if get_world_size() > 1:
            runner.logger.warning(
                'the gradients that each process has accumulated are not '
                'saved: to resume exactly, save after a multiple of '
                f'accumulative_counts={counts} iterations')
            return {}
        return {name: p.grad.cpu() for name, p in _model(
            runner).named_parameters() if p.grad is not None}

    # Loading

    def after_load_checkpoint(self, runner: Runner, checkpoint: dict) -> None:
        if not runner._resume:
            return
        self._resumed = checkpoint.get(KEY)
        if self._resumed is None:
            runner.logger.warning(
                'this checkpoint has no state of the random generators: the '
                'resumed run will be another one than the uninterrupted one')
            return
        others = _differences(runner, checkpoint)
        if others:
            runner.logger.warning(
                'the checkpoint is of another run; this one will not end as '
                'that one would have:\n' + '\n'.join(others))

    def before_train(self, runner: Runner) -> None:
        loop, state = runner.train_loop, self._resumed
        self._resumed = self._random = None
        rank = get_rank()
        mine = None
        if state is not None and rank < len(state['ranks']):
            mine = state['ranks'][rank]
        elif state is not None:
            runner.logger.warning(
                f'the checkpoint has no generators for process {rank}')
        loader = loop.dataloader
        self._order = None
        if _knows(loop) and loader.batch_sampler is not None:
            seed = mine['seed'] if mine else runner.seed
            self._order = seed_samples(loader, seed, rank)
            sampler = _sampler(loader)
            if mine and mine['sampler_seed'] is not None:
                sampler.seed = mine['sampler_seed']
        else:
            runner.logger.warning(
                'ExactResumeHook does not know how to go on within an epoch '
                f'with {type(loop).__name__} and '
                f'{type(loader.dataset).__name__}')
        start = self._start(runner, state) if self._order else 0
        self._began = (runner.epoch, runner.iter - start)
        if self._order is not None and isinstance(loop, IterBasedTrainLoop):
            self._advance(loop, start)
        elif self._order is not None:
            self._order.start = start
        if state is None:
            return
        _put_gradients(runner, state['gradients'])
        if mine:
            try:
                set_random_state(mine['random'])
                self._random = mine['random']
            except ValueError as error:
                runner.logger.warning(f'not all generators resume: {error}')
        if not state['validated'] and _is_due(runner, start):
            runner.logger.info('Validation, which was cut off, is made up for')
            runner.val_loop.run()

    @staticmethod
    def _start(runner: Runner, state: dict | None) -> int:
        """How many batches of the current epoch are done."""
        if state is None:
            return runner.iter if isinstance(
                runner.train_loop, IterBasedTrainLoop) else 0
        now, then = len(runner.train_dataloader), state['num_batches']
        if now == then or isinstance(runner.train_loop, IterBasedTrainLoop):
            return state['batch']
        return state['batch'] * now // then

    def _advance(self, loop: IterBasedTrainLoop, done: int) -> None:
        loader, order = loop.dataloader, self._order
        sampler = _sampler(loader)
        # What was started with the loop loads without our seeds, and has
        # used up some of the sampler.
        loader._iterator = None
        if hasattr(sampler, '_indices_of_rank'):
            # It goes on for ever.
            sampler.indices = sampler._indices_of_rank()
            order.epoch, order.start = 0, done
        else:
            order.epoch, order.start = divmod(done, len(loader))
            if hasattr(sampler, 'set_epoch'):
                sampler.set_epoch(order.epoch)
        loop.dataloader_iterator = _AdvancedIterator(
            loader, done, order.epoch)

    # In between

    def before_train_epoch(self, runner: Runner) -> None:
        if isinstance(runner.train_loop, IterBasedTrainLoop):
            sampler = _sampler(runner.train_dataloader)
            if self._order is not None and hasattr(sampler, 'set_epoch'):
                # DistSamplerSeedHook takes the whole run for an epoch.
                sampler.set_epoch(runner.train_loop.dataloader_iterator._epoch)
            return
        start = 0
        if self._order is not None:
            start = self._order.start
            self._order.epoch = runner.epoch
        self._began = (runner.epoch, runner.iter - start)
        if start:
            if self._random is not None:
                # Again, as a hook may seed what an epoch begins with.
                set_random_state(self._random)
            loop = runner.train_loop
            run_iter = loop.run_iter
            # The loop counts the batches that it sees.
            loop.run_iter = lambda i, batch: run_iter(i + start, batch)

    def after_train_epoch(self, runner: Runner) -> None:
        vars(runner.train_loop).pop('run_iter', None)

    def before_val(self, runner: Runner) -> None:
        self._in_val = get_random_state()

    def before_save_best(self, runner: Runner) -> None:
        """Called by SafeCheckpointHook when the metrics are there."""
        self._validated = (runner.epoch, runner.iter)

    def after_val(self, runner: Runner) -> None:
        set_random_state(self._in_val)
        self._in_val = None


def _model(runner: Runner) -> torch.nn.Module:
    return runner.model.module if is_model_wrapper(
        runner.model) else runner.model


def _sampler(loader: Any) -> Any:
    return getattr(loader.batch_sampler, 'sampler', loader.sampler)


def _knows(loop: Any) -> bool:
    if isinstance(loop, IterBasedTrainLoop):
        return type(loop).run is IterBasedTrainLoop.run
    return (isinstance(loop, EpochBasedTrainLoop)
            and type(loop).run_epoch is EpochBasedTrainLoop.run_epoch)


def _is_due(runner: Runner, start: int) -> bool:
    """Whether the loop would have validated where it was stopped."""
    loop = runner.train_loop
    if isinstance(loop, IterBasedTrainLoop):
        done, end = loop._iter, loop._max_iters
    elif start:
        return False
    else:
        done, end = loop._epoch, loop._max_epochs
    if hasattr(loop, '_decide_current_val_interval'):
        loop._decide_current_val_interval()
    return (runner.val_loop is not None and done >= max(loop.val_begin, 1)
            and (done % loop.val_interval == 0 or done == end))


def _put_gradients(runner: Runner, gradients: dict) -> None:
    for name, parameter in _model(runner).named_parameters():
        if name in gradients:
            parameter.grad = gradients[name].to(parameter.device)


def _versions() -> dict[str, str]:
    return dict(
        python=platform.python_version(), torch=str(torch.__version__),
        numpy=np.__version__, mmengine=mmengine.__version__,
        mmaction2=mmaction.__version__, mmvidattn=__version__)


def _differences(runner: Runner, checkpoint: dict) -> list[str]:
    state = checkpoint[KEY]
    then = dict(state['versions'], processes=state['world_size'])
    then['batches of an epoch'] = state['num_batches']
    now = dict(_versions(), processes=get_world_size())
    now['batches of an epoch'] = len(runner.train_dataloader)
    lines = [f'  {key}: {then.get(key)} then, {value} now'
             for key, value in now.items() if then.get(key) != value]
    texts = ([line for line in text.splitlines()
              if line.partition(' = ')[0] not in IGNORED]
             for text in (checkpoint['meta'].get('cfg', ''),
                          runner.cfg.pretty_text))
    changed = [line for line in difflib.unified_diff(*texts, n=0, lineterm='')
               if not line.startswith(('---', '+++', '@@'))]
    lines += [f'  config: {line}' for line in changed[:MAX_LINES]]
    if len(changed) > MAX_LINES:
        lines.append(f'  config: ... and {len(changed) - MAX_LINES} more')
    return lines
