# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Hook that makes a resumed run equal to an uninterrupted run."""
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
from mmengine.runner import EpochBasedTrainLoop, Runner
from torch.utils.data import DataLoader

from ...utils.modules import unwrap
from ...utils.random_state import get_random_state, set_random_state
from ...version import __version__
from ..seeded_samples import SeededBatches, seed_samples

KEY = 'exact_resume'
# Options that may change on resume.
IGNORED = ('resume', 'load_from', 'work_dir', 'launcher', 'log_level',
           'runner_type')
MAX_LINES = 20
VERSIONS = dict(
    python=platform.python_version(), torch=str(torch.__version__),
    numpy=np.__version__, mmengine=mmengine.__version__,
    mmaction2=mmaction.__version__, mmvidattn=__version__)


@HOOKS.register_module()
class ExactResumeHook(Hook):
    """Save and restore everything that exact resumption needs.

    On a CPU, a resumed run ends with the same bits as an uninterrupted run,
    whether it resumes between two epochs or within one. The hook adds to the
    checkpoint what mmengine's checkpoints lack:

    - the random generators of Python, numpy and torch of each process and
      device (for several processes, this needs
      :class:`AtomicCheckpointHook`), which validation does not change;
    - the position in the data of the epoch;
    - accumulated gradients;
    - the state that an online detector carries from batch to batch;
    - whether the validation after the epoch is complete. If it is not, a
      resumed run repeats it.

    The loop gets a copy of its data loader in which the random numbers of a
    sample, except in a ``collate_fn``, depend only on its position in the run
    (:class:`mmvidattn.engine.seeded_samples.SeededBatches`), and which starts
    at the position of the checkpoint. With another training loop than
    mmengine's ``EpochBasedTrainLoop``, or another data loader than torch's,
    the hook warns that a run cannot resume exactly within an epoch.

    A run can resume with another number of processes if the number of samples
    per step of all processes stays the same; otherwise, the hook raises an
    error. If the config or the versions of packages have changed, the hook
    warns, and lists the differences.

    Attributes:
        batches: Batch sampler that knows the position in the run, or None.
    """
    # Restore the generators after all other preparation.
    priority = 'LOWEST'

    def __init__(self) -> None:
        self.batches: SeededBatches | None = None
        # Number of the current epoch, and of its first iteration.
        self._first = (0, 0)
        # State from the checkpoint, and of its processes.
        self._loaded: dict | None = None
        self._of_rank: dict | None = None
        self._ranks: list | None = None
        self._before_val: dict | None = None
        self._validated: tuple[int, int] | None = None

    def before_save_on_all_ranks(self, runner: Runner) -> None:
        self._ranks = all_gather_object(self._state(runner))

    def before_save_checkpoint(self, runner: Runner,
                               checkpoint: dict) -> None:
        ranks, self._ranks = self._ranks, None
        if 'optimizer' not in checkpoint:
            return
        at = checkpoint['meta']['epoch'], checkpoint['meta']['iter']
        checkpoint[KEY] = dict(
            ranks=ranks or [self._state(runner)],
            world_size=get_world_size(),
            samples=_samples_of_step(runner),
            batch=at[1] - self._first[1] if at[0] == self._first[0] else 0,
            num_batches=len(runner.train_dataloader),
            validated=at == self._validated,
            versions=VERSIONS,
            gradients=_accumulated_gradients(runner, at[1]))

    def _state(self, runner: Runner) -> dict:
        state = dict(random=self._before_val or get_random_state(),
                     seed=runner.seed, sampler_seed=None)
        if self.batches is not None:
            state.update(seed=self.batches.seed, sampler_seed=getattr(
                self.batches.sampler, 'seed', None))
        carried = _carried_state(runner)
        if carried is not None:
            state['carried'] = carried.state_dict()
        return state

    def after_load_checkpoint(self, runner: Runner, checkpoint: dict) -> None:
        if not runner._resume:
            return
        self._loaded = checkpoint.get(KEY)
        if self._loaded is None:
            runner.logger.warning(
                'this checkpoint lacks the state of the random generators: '
                'the resumed run will differ from an uninterrupted one')
            return
        _check_processes(runner, self._loaded)
        differences = _differences(runner, checkpoint)
        if differences:
            runner.logger.warning(
                'the checkpoint is from a run with different settings; the '
                'resumed run will differ from an uninterrupted one (- then, + '
                'now):\n'
                + '\n'.join(differences))

    def before_train(self, runner: Runner) -> None:
        state, self._loaded, self._of_rank = self._loaded, None, None
        self._seed_samples(runner)
        if state is not None:
            self._restore(runner, state)
        if (state is not None and not state['validated']
                and self._val_is_due(runner)):
            runner.logger.info('Repeating the validation that was interrupted')
            runner.val_loop.run()

    def before_train_epoch(self, runner: Runner) -> None:
        if self.batches is None:
            return
        loop = runner.train_loop
        start, self.batches.epoch = self.batches.start, loop.epoch
        self._first = loop.epoch, loop.iter - start
        # The loop counts batches from 0 in an epoch that is resumed, too.
        loop.run_iter = lambda number, batch: type(loop).run_iter(
            loop, number + start, batch)
        if start:
            # Restore again, because a hook may have changed the generators.
            self._restore_generators(runner)

    def _seed_samples(self, runner: Runner) -> None:
        loop = runner.train_loop
        loader = loop.dataloader
        if (isinstance(loop, EpochBasedTrainLoop)
                and type(loader) is DataLoader
                and loader.batch_sampler is not None):
            loop.dataloader = seed_samples(
                loader, runner.seed, get_rank(), get_world_size())
            self.batches = loop.dataloader.batch_sampler
        else:
            runner.logger.warning(
                'ExactResumeHook cannot resume within an epoch with '
                f'{type(loop).__name__} and {type(loader.dataset).__name__}')

    def _restore(self, runner: Runner, state: dict) -> None:
        rank = get_rank()
        for name, parameter in unwrap(runner.model).named_parameters():
            if name in state['gradients']:
                parameter.grad = state['gradients'][name].to(parameter.device)
        if rank < len(state['ranks']):
            self._of_rank = state['ranks'][rank]
            self._restore_generators(runner)
            carried = _carried_state(runner)
            if carried is not None and 'carried' in self._of_rank:
                carried.load_state_dict(self._of_rank['carried'])
        else:
            # The order of samples is the same for all processes.
            self._of_rank = dict(state['ranks'][0], random=None)
            runner.logger.warning(
                'the checkpoint lacks the random generators of process '
                f'{rank}')
        if self.batches is None:
            return
        self.batches.seed = self._of_rank['seed']
        if self._of_rank['sampler_seed'] is not None:
            # Samplers read their seed when an epoch starts.
            self.batches.sampler.seed = self._of_rank['sampler_seed']
        # Skip the same share of the epoch, whose length may have changed.
        self.batches.start = (state['batch'] * len(self.batches)
                              // state['num_batches'])

    def _restore_generators(self, runner: Runner) -> None:
        try:
            if self._of_rank is not None and self._of_rank['random']:
                set_random_state(self._of_rank['random'])
        except ValueError as error:
            runner.logger.warning('not all random generators could be '
                                  f'restored: {error}')

    def _val_is_due(self, runner: Runner) -> bool:
        loop = runner.train_loop
        if (runner.val_loop is None
                or not isinstance(loop, EpochBasedTrainLoop)
                or getattr(self.batches, 'start', 0)):
            return False
        loop._decide_current_val_interval()
        done = loop.epoch
        return done >= max(loop.val_begin, 1) and (
            done % loop.val_interval == 0 or done == loop.max_epochs)

    def before_val(self, runner: Runner) -> None:
        self._before_val = get_random_state()

    def before_save_best(self, runner: Runner) -> None:
        """Note that the validation is complete (for AtomicCheckpointHook)."""
        self._validated = (runner.epoch, runner.iter)

    def after_val(self, runner: Runner) -> None:
        set_random_state(self._before_val)
        self._before_val = None


def _accumulated_gradients(runner: Runner, iter: int) -> dict:
    counts = getattr(runner.optim_wrapper, '_accumulative_counts', 1)
    if iter % counts == 0 or iter == runner.max_iters:
        return {}
    if get_world_size() > 1:
        runner.logger.warning(
            'the gradients that each process has accumulated are not '
            'saved: to resume exactly, save after a multiple of '
            f'accumulative_counts={counts} iterations')
        return {}
    return {name: p.grad.cpu() for name, p in unwrap(
        runner.model).named_parameters() if p.grad is not None}


def _carried_state(runner: Runner) -> Any:
    """Return the state that the model carries between batches, or None."""
    return getattr(unwrap(runner.model), 'carried', None)


def _samples_of_step(runner: Runner) -> int | None:
    """Return the number of samples per step over all processes, or None."""
    loader = runner.train_dataloader
    size = getattr(loader.batch_sampler, 'batch_size', loader.batch_size)
    return size and size * get_world_size()


def _check_processes(runner: Runner, state: dict) -> None:
    """Check that a run can resume with this number of processes."""
    now, then = get_world_size(), state.get('samples')
    samples = _samples_of_step(runner)
    if state['world_size'] != now and then != samples:
        raise ValueError(
            f'the checkpoint is from {state["world_size"]} processes with '
            f'{then} samples per step, got {now} processes with {samples}, '
            'which would change the schedule: set train_dataloader.batch_size '
            f'to {then} / {now}, or start a new run from these weights, with '
            'load_from and without resume')


def _differences(runner: Runner, checkpoint: dict) -> list[str]:
    state = checkpoint[KEY]
    texts = (
        [f'{name} {value}' for name, value in versions.items()]
        + [f'processes {processes}']
        + [line for line in config.splitlines()
           if line.partition(' = ')[0] not in IGNORED]
        for versions, processes, config in (
            (state['versions'], state['world_size'],
             checkpoint['meta'].get('cfg', '')),
            (VERSIONS, get_world_size(), runner.cfg.pretty_text)))
    lines = [line for line in difflib.unified_diff(*texts, n=0, lineterm='')
             if not line.startswith(('---', '+++', '@@'))]
    more = len(lines) - MAX_LINES
    return lines[:MAX_LINES] + [f'... and {more} more'] * (more > 0)
