# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Base class of dataset wrappers, and functions for nested datasets."""
import inspect
from collections.abc import Callable
from typing import Any

from mmaction.registry import DATASETS
from mmengine.dataset import BaseDataset
from torch.utils.data import Dataset


class DatasetWrapper(Dataset):
    """Dataset with the attributes of the dataset that it wraps.

    Subclasses define ``prepare_data``, which returns None to skip a sample.
    """

    def __init__(self, dataset: Dataset) -> None:
        self.dataset = dataset

    def __getattr__(self, name: str) -> Any:
        if name == 'dataset':
            # The attribute is not set yet while a worker unpickles the
            # wrapper.
            raise AttributeError(name)
        return getattr(self.dataset, name)

    def __len__(self) -> int:
        return len(self.dataset)

    # If the sample is None, this method loads a sample at a random index.
    __getitem__ = BaseDataset.__getitem__


def map_innermost(dataset: Any, wrapper: type,
                  change: Callable[[Any], Any]) -> Any:
    """Replace the innermost datasets of a config, or a built dataset.

    Args:
        dataset: Config of a dataset or of a wrapper of datasets, or built
            dataset.
        wrapper: Wrapper class; datasets in such a wrapper are not replaced.
        change: Function that returns the replacement of a dataset.
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
    used = type(dataset)
    if isinstance(dataset, dict):
        used = dataset.get('type')
        used = used if inspect.isclass(used) else DATASETS.get(used)
    return used is not None and issubclass(used, kind)
