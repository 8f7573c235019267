# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Parts that several hooks share."""
from typing import Any, TypeVar

import torch
from mmengine.hooks import Hook
from mmengine.runner import Runner

Kind = TypeVar('Kind', bound=Hook)
MAX_FILES = 32
# Keys with the name of a video, a folder of frames, or a feature stream.
FILE_KEYS = 'filename', 'frame_dir', 'video_name'


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


def metainfos(batch: Any) -> list[dict]:
    """Return the meta information of each sample that has any."""
    samples = batch.get('data_samples') if isinstance(batch, dict) else None
    return [sample.metainfo for sample in samples or ()
            if hasattr(sample, 'metainfo')]


def name_files(batch: Any) -> list[str]:
    """Return the files of a batch, as far as known; '...' after 32 of them."""
    names = [next(filter(None, map(metainfo.get, FILE_KEYS)), None)
             for metainfo in metainfos(batch)]
    names = [str(name) for name in names if name]
    return names[:MAX_FILES] + ['...'] * (len(names) > MAX_FILES)


def is_finite(value: Any) -> bool:
    """Return True if all tensors in nested dicts and lists are finite."""
    if torch.is_tensor(value):
        return not value.is_floating_point() or bool(value.isfinite().all())
    if isinstance(value, dict):
        return all(map(is_finite, value.values()))
    if isinstance(value, (list, tuple)):
        return all(map(is_finite, value))
    return True
