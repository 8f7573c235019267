# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Any dataset of mmaction2, with a guard around its loading."""
import inspect
from collections.abc import Iterator
from typing import Any

from mmaction.datasets import BaseActionDataset
from mmaction.registry import DATASETS
from mmengine.dataset import BaseDataset
from torch.utils.data import Dataset

from ...utils.arguments import check_arguments
from ..wrappers import find_within
from .checked_transform import CheckedTransform
from .guard import Guard
from .guarded_video_dataset import GuardedVideoDataset


@DATASETS.register_module()
@check_arguments
class GuardedDataset(Dataset):
    """A dataset whose unreadable files do not end the training.

    In training another sample, at random, takes the place of one that cannot
    be loaded; see :class:`~mmvidattn.datasets.broken_files.guard.Guard`. All
    else is as in the dataset.

    Args:
        dataset: The dataset, or its config. The frames that its transforms
            give are checked if it is a config.
        on_error: What to do with a missing or unreadable file: ``'skip'``,
            which raises in test mode, ``'raise'`` or ``'flag'``.
        options: Other options of ``Guard``.
    """

    def __init__(self, dataset: dict | BaseDataset, on_error: str = 'skip',
                 **options: Any) -> None:
        if isinstance(dataset, dict):
            if 'pipeline' in dataset:
                dataset = dict(dataset, pipeline=[
                    CheckedTransform(t) for t in dataset['pipeline']])
            dataset = DATASETS.build(dataset)
        self.dataset = dataset
        if dataset.test_mode and on_error == 'skip':
            on_error = 'raise'
        self.guard = Guard(on_error=on_error, **options)

    def __getattr__(self, name: str) -> Any:
        if name == 'dataset':
            # Not there yet while it is unpickled in a worker.
            raise AttributeError(name)
        return getattr(self.dataset, name)

    def __len__(self) -> int:
        return len(self.dataset)

    def prepare_data(self, idx: int) -> Any:
        """Load a sample; None if it is to be skipped."""
        return self.guard(self.dataset, idx, self.dataset.prepare_data)

    # Draws another number for a sample that is None.
    __getitem__ = BaseDataset.__getitem__


def guarded(dataset: Any, **options: Any) -> Any:
    """Guard mmaction2's datasets in a dataset, but those that have a guard.

    Args:
        dataset: Config of a dataset, or of a wrapper of one or more; or a
            dataset that is built.
        options: See :class:`GuardedDataset`.

    Returns:
        The config, or the dataset, with the guards in it.
    """
    kind = type(dataset)
    if isinstance(dataset, dict):
        if 'datasets' in dataset:
            return dict(dataset, datasets=[
                guarded(one, **options) for one in dataset['datasets']])
        if 'dataset' in dataset:
            if dataset.get('type') == GuardedDataset.__name__:
                return dataset
            return dict(dataset,
                        dataset=guarded(dataset['dataset'], **options))
        kind = dataset.get('type')
        kind = kind if inspect.isclass(kind) else DATASETS.get(kind)
    if kind is None or not issubclass(kind, BaseActionDataset) or issubclass(
            kind, GuardedVideoDataset):
        return dataset
    if isinstance(dataset, dict):
        return dict(type=GuardedDataset.__name__, dataset=dataset, **options)
    return GuardedDataset(dataset, **options)


def guards_of(dataset: Any) -> Iterator[Guard]:
    """Find the guards in a dataset, or in a wrapper of one or more."""
    def pick(one: Any) -> Guard | None:
        guard = getattr(one, 'guard', None)
        return guard if isinstance(guard, Guard) else None

    return find_within(dataset, pick)
