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
from mmengine.runner import Runner

from ...utils.random_state import get_random_state, set_random_state
from ...utils.unwrap import unwrap
from ...version import __version__
from .safe_hook import SafeHook

KEY = 'exact_resume'
# Options that may change on resume.
IGNORED = ('resume', 'load_from', 'work_dir', 'launcher', 'log_level',
           'runner_type')
MAX_LINES = 12
VERSIONS = dict(
    python=platform.python_version(), torch=str(torch.__version__),
    numpy=np.__version__, mmengine=mmengine.__version__,
    mmaction2=mmaction.__version__, mmvidattn=__version__)


@HOOKS.register_module()
class ExactResumeHook(SafeHook):
    """Save and restore everything that exact resumption needs.

    On a CPU, a resumed run ends with the same bits as an uninterrupted run,
    whether it resumes between two epochs or within one. The hook adds to the
    checkpoint what mmengine's checkpoints lack:

    - the random generators of Python, numpy and torch of each process and
      device (for several processes, this needs :class:`SafeCheckpointHook`);
    - the position in the data of the epoch;
    - accumulated gradients;
    - the state that an online detector carries from batch to batch;
    - whether the validation after the epoch is complete. If it is not, a
      resumed run repeats it.

    The random numbers that load a sample depend only on the position of the
    sample in the run (:class:`mmvidattn.engine.seeded_samples.SeededBatches`);
    random numbers in a ``collate_fn`` do not. The generators are restored
    after each validation. Only the training loops of
    :class:`~mmvidattn.engine.SafeRunner` track the position; with another
    loop, the hook warns that a run cannot resume within an epoch.

    A run can resume with another number of processes if the number of samples
    per step of all processes stays the same; otherwise, the hook raises an
    error. If the config or the versions of packages have changed, the hook
    warns, and lists the differences.

    Attributes:
        resumed: State from the checkpoint; None in a new run.
        of_rank: Entry of ``resumed`` for this process, or None.
    """
    # Restore the generators after all other preparation.
    priority = 'LOWEST'

    def __init__(self) -> None:
        self.resumed: dict | None = None
        self.of_rank: dict | None = None
        self._loaded: dict | None = None
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
        loop = runner.train_loop
        at = checkpoint['meta']['epoch'], checkpoint['meta']['iter']
        checkpoint[KEY] = dict(
            ranks=ranks or [self._state(runner)],
            world_size=get_world_size(),
            samples=_samples_of_step(runner),
            batch=loop.batches_done(*at) if _knows_place(loop) else 0,
            num_batches=len(runner.train_dataloader),
            validated=at == self._validated,
            versions=VERSIONS,
            gradients=_accumulated_gradients(runner, at[1]))

    def _state(self, runner: Runner) -> dict:
        loop = runner.train_loop
        state = dict(random=self._before_val or get_random_state(),
                     seed=runner.seed, sampler_seed=None)
        if _knows_place(loop):
            state.update(seed=loop.batches.seed,
                         sampler_seed=getattr(loop.sampler, 'seed', None))
        carried = _carried_state(runner)
        if carried is not None:
            state['carried'] = carried.state_dict()
        return state

    @staticmethod
    def check_processes(runner: Runner, checkpoint: dict) -> None:
        """Check that a run can resume with this number of processes.

        Raises:
            ValueError: If the number of samples per step differs from the
                checkpoint, which would change the number of steps per epoch.
        """
        state, now = checkpoint.get(KEY), get_world_size()
        if state is None or state['world_size'] == now:
            return
        then, samples = state.get('samples'), _samples_of_step(runner)
        if then == samples:
            return
        remedy = '' if not then or then % now else (
            f'set train_dataloader.batch_size={then // now}, for {then} '
            'samples per step, or ')
        raise ValueError(
            f'the checkpoint is from {state["world_size"]} processes, with '
            f'{then or "an unknown number of"} samples per step; this run has '
            f'{now} processes and {samples or "an unknown number of"} samples '
            f'per step, which would change the schedule: {remedy}start a new '
            'run from these weights, with load_from and without resume')

    def after_load_checkpoint(self, runner: Runner, checkpoint: dict) -> None:
        if not runner._resume:
            return
        self.check_processes(runner, checkpoint)
        self._loaded = checkpoint.get(KEY)
        if self._loaded is None:
            runner.logger.warning(
                'this checkpoint lacks the state of the random generators: '
                'the resumed run will differ from an uninterrupted one')
            return
        differences = _differences(runner, checkpoint)
        if differences:
            runner.logger.warning(
                'the checkpoint is from a run with different settings; the '
                'resumed run will differ from an uninterrupted one:\n'
                + '\n'.join(differences))

    def before_train(self, runner: Runner) -> None:
        self.resumed, self._loaded, self.of_rank = self._loaded, None, None
        loop, rank = runner.train_loop, get_rank()
        if not _knows_place(loop):
            runner.logger.warning(
                'ExactResumeHook cannot resume within an epoch with '
                f'{type(loop).__name__} and '
                f'{type(loop.dataloader.dataset).__name__}')
        if self.resumed is None:
            return
        for name, parameter in unwrap(runner.model).named_parameters():
            if name in self.resumed['gradients']:
                parameter.grad = self.resumed['gradients'][name].to(
                    parameter.device)
        if rank >= len(self.resumed['ranks']):
            # The order of samples is the same for all processes.
            self.of_rank = dict(self.resumed['ranks'][0], random=None)
            runner.logger.warning(
                'the checkpoint lacks the random generators of process '
                f'{rank}')
            return
        self.of_rank = self.resumed['ranks'][rank]
        self.restore_generators(runner)
        carried = _carried_state(runner)
        if carried is not None and 'carried' in self.of_rank:
            carried.load_state_dict(self.of_rank['carried'])

    def restore_generators(self, runner: Runner) -> None:
        """Restore the random generators, if the checkpoint has them."""
        try:
            if self.of_rank is not None and self.of_rank['random']:
                set_random_state(self.of_rank['random'])
        except ValueError as error:
            runner.logger.warning('not all random generators could be '
                                  f'restored: {error}')

    def before_val(self, runner: Runner) -> None:
        self._before_val = get_random_state()

    def before_save_best(self, runner: Runner) -> None:
        """Note that the validation is complete (for SafeCheckpointHook)."""
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


def _knows_place(loop: Any) -> bool:
    return getattr(loop, 'batches', None) is not None


def _samples_of_step(runner: Runner) -> int | None:
    """Return the number of samples per step over all processes, or None."""
    loader = runner.train_dataloader
    size = getattr(loader.batch_sampler, 'batch_size', loader.batch_size)
    return size and size * get_world_size()


def _differences(runner: Runner, checkpoint: dict) -> list[str]:
    state = checkpoint[KEY]
    now = dict(VERSIONS, processes=get_world_size())
    then = dict(state['versions'], processes=state['world_size'])
    lines = [f'  {key}: {then.get(key)} then, {value} now'
             for key, value in now.items() if then.get(key) != value]
    texts = ([line for line in text.splitlines()
              if line.partition(' = ')[0] not in IGNORED]
             for text in (checkpoint['meta'].get('cfg', ''),
                          runner.cfg.pretty_text))
    changed = [f'  config: {line}' for line in difflib.unified_diff(
        *texts, n=0, lineterm='')
        if not line.startswith(('---', '+++', '@@'))]
    more = len(changed) - MAX_LINES
    return lines + changed[:MAX_LINES] + (
        [f'  config: ... and {more} more'] if more > 0 else [])
