# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Dataset that loads cached features instead of decoding videos."""
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import torch
from mmaction.datasets import VideoDataset
from mmaction.registry import DATASETS
from torch import Tensor

from ..utils.arguments import check_arguments
from ..utils.feature_cache import FeatureFolder, read_features
from ..utils.random_state import random_place, seeded
from .broken_files.checked_step import plain_step
from .broken_files.guarded_dataset import guards_of
from .wrappers import DatasetWrapper, find_within, is_kind, map_innermost

PACKS = 'PackActionInputs'
# Keys of a sample that do not affect its frames.
IRRELEVANT = 'filename', 'label', 'sample_idx', 'segment_id'


@DATASETS.register_module()
@check_arguments
class FeatureCacheDataset(DatasetWrapper):
    """Dataset wrapper that replaces frames by cached features.

    The features are outputs of the frozen layers of a
    :class:`~mmvidattn.recognizers.FineTunedRecognizer3D`. If a sample's
    features are cached, its video is not opened: the sample has
    ``frozen_features`` [V, *] for its V clips, and zeros as ``inputs``.
    Otherwise, the sample has its frames and, as ``feature_file``, the path to
    which the recognizer writes the features.

    :class:`~mmvidattn.engine.FeatureCacheHook` adds this wrapper to the
    datasets of a run.

    Args:
        dataset: Config of a dataset of video files, with or without a guard.

    Raises:
        ValueError: If the config has no pipeline, or its pipeline does not end
            with ``PackActionInputs``.
    """

    def __init__(self, dataset: dict) -> None:
        pipeline = _pipeline_of(dataset)
        self.pipeline_cfg = pipeline[:-1]
        if not isinstance(pipeline[-1], dict) or pipeline[-1].get(
                'type') != PACKS:
            raise ValueError('cached features need a pipeline that ends with '
                             f'{PACKS}, got {pipeline[-1]}')
        super().__init__(DATASETS.build(dataset))
        self._folder: FeatureFolder | None = None
        self._num_variants: int | None = None
        # In shared memory, so that persistent workers see changes.
        self._epoch = torch.zeros((), dtype=torch.int64).share_memory_()

    def open_cache(self, root: str | Path, settings: Mapping[str, Any],
                   num_variants: int | None) -> None:
        """Set the folder of the features; call it before workers start.

        Args:
            root: Folder of the feature cache.
            settings: Settings that determine the features, except for the
                pipeline.
            num_variants: Number of cached random outcomes per clip, see
                :class:`~mmvidattn.engine.FeatureCacheHook`.

        Raises:
            ValueError: If an option in the pipeline is an object instead of
                plain data.
        """
        self._folder = FeatureFolder(
            root, dict(settings, pipeline=self.pipeline_cfg))
        self._num_variants = num_variants

    def set_epoch(self, epoch: int) -> None:
        """Set the epoch, which chooses the variant of each clip."""
        self._epoch.fill_(epoch)

    def prepare_data(self, idx: int) -> Any:
        """Load a sample; return None to skip it."""
        if self._folder is None:
            raise ValueError(
                'FeatureCacheDataset needs FeatureCacheHook in custom_hooks, '
                'which sets the folder of the features')
        info = self.dataset.get_data_info(idx)
        variant = 0 if self.test_mode else int(self._epoch) % (
            self._num_variants or 1)
        try:
            path = self._folder.file_of(
                info['filename'], variant=variant,
                info={key: value for key, value in info.items()
                      if key not in IRRELEVANT})
        except OSError as error:
            # The dataset's guard, if any, handles a missing file.
            data = self.dataset.prepare_data(idx)
            if data is not None and 'unreadable' not in data['data_samples']:
                raise ValueError(
                    'cached features need local files, got '
                    f'{info["filename"]}: {error}') from error
            return data
        features = read_features(path)
        if features is not None:
            return self._pack(info, features)
        data = self._load(idx, info, path)
        if data is None or 'unreadable' in data['data_samples']:
            return data
        self._check_label(info, data)
        data['data_samples'].set_metainfo(dict(
            feature_file=str(path), clips_shape=tuple(data['inputs'].shape)))
        return data

    def _pack(self, info: dict, features: Tensor) -> dict:
        # Shaped like clips, [V, C, T, H, W]. In a batch with real clips,
        # mmengine pads all axes except the first.
        inputs = torch.zeros(len(features), 1, 1, 1, 1, dtype=torch.uint8)
        data = self.dataset.pipeline.transforms[-1](dict(info, imgs=inputs))
        data['data_samples'].set_data(dict(frozen_features=features))
        for guard in guards_of(self.dataset):
            guard.annotate(data, info['filename'])
        return data

    def _load(self, idx: int, info: dict, path: Path) -> dict | None:
        if self._num_variants is not None:
            # The file name depends on the variant.
            with seeded([*path.stem.encode()]):
                return self.dataset.prepare_data(idx)
        before = random_place()
        data = self.dataset.prepare_data(idx)
        if random_place() != before:
            raise ValueError(
                f'{self._find_random(info)} of the pipeline is random: cached '
                'features need a deterministic pipeline, or num_variants of '
                'FeatureCacheHook to cache that many random outcomes')
        return data

    def _find_random(self, info: dict) -> str:
        for step in self.dataset.pipeline.transforms:
            before = random_place()
            info = step(info)
            if random_place() != before:
                return type(plain_step(step)).__name__
        return 'a step'

    def _check_label(self, info: dict, data: dict) -> None:
        """Raise a ``ValueError`` if a step has changed the label."""
        given = data['data_samples'].get('gt_label')
        if given is None:
            return
        packed = self.dataset.pipeline.transforms[-1](
            dict(info, imgs=data['inputs']))['data_samples']
        if not torch.equal(given, packed.gt_label):
            raise ValueError('a step of the pipeline changes the label of '
                             f'{info["filename"]}: its features cannot be '
                             'cached')


def with_feature_cache(dataset: Any) -> Any:
    """Wrap the datasets of a config in :class:`FeatureCacheDataset`.

    Raises:
        ValueError: If a dataset does not read video files, or is not a config.
    """
    def cached(one: Any) -> dict:
        if not isinstance(one, dict) or not is_kind(one, VideoDataset):
            raise ValueError(
                'cached features need the config of a dataset of video files, '
                'such as VideoDataset, got '
                f'{one.get("type") if isinstance(one, dict) else one}')
        return dict(type=FeatureCacheDataset.__name__, dataset=one)

    return map_innermost(dataset, FeatureCacheDataset, cached)


def feature_caches_of(dataset: Any) -> Iterator[FeatureCacheDataset]:
    """Find all :class:`FeatureCacheDataset` in a dataset and its wrappers."""
    return find_within(dataset, lambda one: one if isinstance(
        one, FeatureCacheDataset) else None)


def _pipeline_of(dataset: dict) -> list:
    while isinstance(dataset, dict) and 'pipeline' not in dataset:
        dataset = dataset.get('dataset')
    if not isinstance(dataset, dict) or not dataset['pipeline']:
        raise ValueError('FeatureCacheDataset needs the config of a dataset '
                         f'with a pipeline, got {dataset}')
    return dataset['pipeline']
