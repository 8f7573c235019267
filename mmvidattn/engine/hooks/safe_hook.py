# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""The base of hooks whose work is done by other parts of a run."""
from typing import TypeVar

from mmengine.hooks import Hook
from mmengine.runner import Runner

Kind = TypeVar('Kind', bound=Hook)


def find_hook(runner: Runner, kind: type[Kind]) -> Kind | None:
    """Find a runner's hook of a type; None if it has none."""
    return next((h for h in runner.hooks if isinstance(h, kind)), None)


class SafeHook(Hook):
    """A hook that switches something on in :class:`SafeRunner`'s parts."""

    def before_run(self, runner: Runner) -> None:
        # The parts of SafeRunner look for hooks of this type.
        if not getattr(runner, 'has_safe_parts', False):
            raise RuntimeError(
                f"{type(self).__name__} does nothing without mmvidattn's "
                "SafeRunner: add runner_type = 'SafeRunner' to the config, "
                'train and test with tools/*.py, or derive your '
                f'{type(runner).__name__} from it')
