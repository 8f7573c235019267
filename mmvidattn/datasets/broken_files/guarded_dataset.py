# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Any dataset of mmaction2, with a guard around its loading."""
from collections.abc import Iterator
from typing import Any

from mmaction.datasets import BaseActionDataset
from mmaction.registry import DATASETS
from mmengine.dataset import BaseDataset

from ...utils.arguments import check_arguments
from ..wrappers import DatasetWrapper, find_within, is_kind, map_innermost
from .guard import Guard
from .guarded_video_dataset import GuardedVideoDataset


@DATASETS.register_module()
@check_arguments
class GuardedDataset(DatasetWrapper):
    """A dataset whose unreadable files do not end the training.

    In training another sample, at random, takes the place of one that cannot
    be loaded; see :class:`~mmvidattn.datasets.broken_files.guard.Guard`. All
    else is as in the dataset.

    Args:
        dataset: The dataset, or its config.
        options: Options of ``Guard``.
    """

    def __init__(self, dataset: dict | BaseDataset, **options: Any) -> None:
        if isinstance(dataset, dict):
            dataset = DATASETS.build(dataset)
        super().__init__(dataset)
        self.guard = Guard(dataset, **options)

    def prepare_data(self, idx: int) -> Any:
        """Load a sample; None if it is to be skipped."""
        return self.guard(self.dataset, idx, self.dataset.prepare_data)


def guarded(dataset: Any, **options: Any) -> Any:
    """Guard mmaction2's datasets in a dataset, but those that have a guard.

    Args:
        dataset: Config of a dataset, or of a wrapper of one or more; or a
            dataset that is built.
        options: See :class:`GuardedDataset`.

    Returns:
        The config, or the dataset, with the guards in it.
    """
    def guard(one: Any) -> Any:
        if not is_kind(one, BaseActionDataset) or is_kind(
                one, GuardedVideoDataset):
            return one
        if isinstance(one, dict):
            return dict(type=GuardedDataset.__name__, dataset=one, **options)
        return GuardedDataset(one, **options)

    return map_innermost(dataset, GuardedDataset, guard)


def guards_of(dataset: Any) -> Iterator[Guard]:
    """Find the guards in a dataset, or in a wrapper of one or more."""
    def pick(one: Any) -> Guard | None:
        guard = getattr(one, 'guard', None)
        return guard if isinstance(guard, Guard) else None

    return find_within(dataset, pick)
