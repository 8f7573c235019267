# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Wrapper that adds a :class:`Guard` to any mmaction2 dataset."""
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
    """Dataset wrapper that skips samples with unreadable files.

    In training, a random sample replaces a sample that cannot be loaded; see
    :class:`~mmvidattn.datasets.broken_files.guard.Guard`.

    Args:
        dataset: Dataset or its config.
        options: Options of ``Guard``.
    """

    def __init__(self, dataset: dict | BaseDataset, **options: Any) -> None:
        if isinstance(dataset, dict):
            dataset = DATASETS.build(dataset)
        super().__init__(dataset)
        self.guard = Guard(dataset, **options)

    def prepare_data(self, idx: int) -> Any:
        """Load a sample; return None to skip it."""
        return self.guard(self.dataset, idx, self.dataset.prepare_data)


def guarded(dataset: Any, **options: Any) -> Any:
    """Wrap mmaction2's datasets in :class:`GuardedDataset`.

    Args:
        dataset: Config of a dataset, config of a wrapper of datasets, or built
            dataset. Datasets that already have a guard stay unchanged.
        options: Options of :class:`GuardedDataset`.

    Returns:
        Config or dataset with guards.
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
    """Find all guards in a dataset and its wrappers."""
    def pick(one: Any) -> Guard | None:
        guard = getattr(one, 'guard', None)
        return guard if isinstance(guard, Guard) else None

    return find_within(dataset, pick)
