# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Disk cache of the features of a frozen network."""
from typing import Literal

from mmaction.registry import HOOKS
from mmengine.runner import EpochBasedTrainLoop, Runner
from torch.utils.data import DataLoader

from ...datasets.feature_cache_dataset import feature_caches_of
from ...utils.arguments import Count, Positive, check_arguments
from ...utils.feature_cache import FeatureWriter, megabytes
from ...utils.unwrap import unwrap
from .safe_hook import SafeHook


@HOOKS.register_module()
@check_arguments
class FeatureCacheHook(SafeHook):
    """Compute the features of frozen layers once per clip, and cache them.

    The model must be a :class:`~mmvidattn.recognizers.FineTunedRecognizer3D`
    with ``freeze='spatial'`` or ``freeze='backbone'``. The first epoch writes
    the features to disk. Later epochs neither open a video nor run the frozen
    layers. Validation and test also use the cache. Several processes, runs and
    resumed runs can share a cache. :class:`~mmvidattn.engine.SafeRunner` wraps
    the datasets in :class:`~mmvidattn.datasets.FeatureCacheDataset`.

    The features of a clip are computed again after a change of the video's
    content, the segment, the pipeline, the options of the backbone and the
    preprocessor, the frozen weights, or ``dtype``. (The content is compared by
    a hash, which is computed again if the size or the modification time of the
    file changes.) A change of the device or of a package has no effect on the
    cache, although it may change rounding and decoding: clear the folder after
    a change of decoder.

    The frozen layers process one clip at a time, without autocast, so that the
    features of a clip do not depend on the other clips of its batch.

    Args:
        cache_dir: Folder of the features. Several runs may share it.
        num_variants: Number of random augmentations of each training video
            to cache. Epochs use them in turn; with 1, all epochs use the same
            one. Defaults to None; then, a training pipeline that draws random
            numbers from Python, numpy or torch is an error.
        dtype: Type of the features on disk, 'float32' or 'float16'. Defaults
            to 'float32'.
        max_gb: Limit of all files under ``cache_dir``, in gigabytes. Defaults
            to no limit.
    """

    def __init__(self,
                 cache_dir: str,
                 num_variants: Count | None = None,
                 dtype: Literal['float32', 'float16'] = 'float32',
                 max_gb: Positive | None = None) -> None:
        self.num_variants = num_variants
        # Settings that determine the features, while a training runs.
        self._settings: dict | None = None
        self._last_counts: dict[str, tuple[int, int]] = {}
        self.writer = FeatureWriter(cache_dir, dtype, max_gb)

    def before_train(self, runner: Runner) -> None:
        if (self.num_variants or 1) > 1 and not isinstance(
                runner.train_loop, EpochBasedTrainLoop):
            raise ValueError(
                'num_variants > 1 selects cached features by epoch, so it '
                'needs train_cfg with by_epoch=True, got '
                f'{type(runner.train_loop).__name__}')
        self._settings = self._describe(runner)
        self._open(runner, runner.train_dataloader)
        self._log_size(runner)

    def before_train_epoch(self, runner: Runner) -> None:
        for dataset in feature_caches_of(runner.train_dataloader.dataset):
            dataset.set_epoch(runner.epoch)

    def after_train_epoch(self, runner: Runner) -> None:
        self._log_counts(runner, 'training')

    def before_val(self, runner: Runner) -> None:
        self._open(runner, runner.val_dataloader)

    def after_train(self, runner: Runner) -> None:
        self._settings = None

    def after_val(self, runner: Runner) -> None:
        self._log_counts(runner, 'validation')

    def before_test(self, runner: Runner) -> None:
        self._open(runner, runner.test_dataloader)
        self._log_size(runner)

    def after_test(self, runner: Runner) -> None:
        self._log_counts(runner, 'test')

    def _open(self, runner: Runner, loader: DataLoader) -> None:
        settings = self._settings or self._describe(runner)
        for dataset in feature_caches_of(loader.dataset):
            dataset.open_cache(self.writer.root, settings, self.num_variants)

    def _describe(self, runner: Runner) -> dict:
        """Pass the writer to the model; return what features depend on."""
        model = unwrap(runner.model)
        if not hasattr(model, 'describe_frozen'):
            raise ValueError(
                'cached features need model.type FineTunedRecognizer3D with '
                f"freeze='spatial' or 'backbone', got {type(model).__name__}")
        settings = dict(model.describe_frozen(),
                        dtype=str(self.writer.dtype).removeprefix('torch.'))
        model.write_features(self.writer)
        return settings

    def _log_size(self, runner: Runner) -> None:
        folders = self.writer.measure()
        runner.logger.info(
            f'cached features: {self.writer.root} has '
            f'{megabytes(self.writer.size)} for '
            f'{sum(folder["files"] for folder in folders)} clips, from '
            f'{len(folders)} pipelines or frozen networks (mmvidattn '
            f'feature-cache {self.writer.root} lists and clears them)')

    def _log_counts(self, runner: Runner, split: str) -> None:
        writer = self.writer
        counts = writer.take_counts()
        # Log only changes, because most epochs have the same counts.
        if counts != self._last_counts.get(split):
            self._last_counts[split] = counts
            runner.logger.info(
                f'cached features: {split}, {counts[0]} clips from disk, '
                f'{counts[1]} computed; {megabytes(writer.size)} in '
                f'{writer.root}')
