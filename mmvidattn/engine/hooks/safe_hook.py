# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Base class of hooks that need ``SafeRunner``, and a search for hooks."""
from typing import TypeVar

from mmengine.hooks import Hook
from mmengine.runner import Runner

Kind = TypeVar('Kind', bound=Hook)


def find_hook(runner: Runner, kind: type[Kind]) -> Kind | None:
    """Return the runner's hook of a type, or None."""
    return next((h for h in runner.hooks if isinstance(h, kind)), None)


class SafeHook(Hook):
    """Base of hooks that work only with :class:`SafeRunner`."""

    def before_run(self, runner: Runner) -> None:
        if not getattr(runner, 'has_safe_parts', False):
            raise RuntimeError(
                f"{type(self).__name__} has no effect without mmvidattn's "
                "SafeRunner: add runner_type = 'SafeRunner' to the config, "
                'train and test with tools/*.py, or derive '
                f'{type(runner).__name__} from SafeRunner')
