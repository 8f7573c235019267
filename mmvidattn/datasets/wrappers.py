# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Wrappers of datasets, built or in a config."""
import inspect
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

from mmaction.registry import DATASETS
from mmengine.dataset import BaseDataset
from torch.utils.data import Dataset

Found = TypeVar('Found')


class DatasetWrapper(Dataset):
    """Dataset with the attributes of the dataset that it wraps.

    Subclasses define ``prepare_data``, which returns None to skip a sample.
    """

    def __init__(self, dataset: Dataset) -> None:
        self.dataset = dataset

    def __getattr__(self, name: str) -> Any:
        if name == 'dataset':
            # Not set yet while a worker unpickles the wrapper.
            raise AttributeError(name)
        return getattr(self.dataset, name)

    def __len__(self) -> int:
        return len(self.dataset)

    # Draws another index if the sample is None.
    __getitem__ = BaseDataset.__getitem__


def find_within(dataset: Any,
                pick: Callable[[Any], Found | None]) -> Iterator[Found]:
    """Find objects in a dataset and the datasets that it wraps.

    Args:
        dataset: Outermost dataset.
        pick: Returns the object of a dataset, or None. The search does not
            look inside a dataset with an object.
    """
    found = pick(dataset)
    if found is not None:
        yield found
        return
    inner = getattr(dataset, 'datasets', None)
    if inner is None:
        inner = [getattr(dataset, 'dataset', None)]
    for one in inner:
        if one is not None:
            yield from find_within(one, pick)


def map_innermost(dataset: Any, wrapper: type,
                  change: Callable[[Any], Any]) -> Any:
    """Change the innermost datasets of a config, or a built dataset.

    Args:
        dataset: Config of a dataset, or of a wrapper of one or more; or a
            built dataset.
        wrapper: Class of a wrapper whose datasets stay unchanged.
        change: Returns the replacement of an innermost dataset.
    """
    if isinstance(dataset, dict):
        if dataset.get('type') == wrapper.__name__:
            return dataset
        if 'datasets' in dataset:
            return dict(dataset, datasets=[
                map_innermost(one, wrapper, change)
                for one in dataset['datasets']])
        if 'dataset' in dataset:
            return dict(dataset, dataset=map_innermost(
                dataset['dataset'], wrapper, change))
    return change(dataset)


def is_kind(dataset: Any, kind: type) -> bool:
    """Return True if a dataset, built or in a config, has this class."""
    found = type(dataset)
    if isinstance(dataset, dict):
        found = dataset.get('type')
        found = found if inspect.isclass(found) else DATASETS.get(found)
    return found is not None and issubclass(found, kind)
