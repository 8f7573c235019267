# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Keeps the features of a frozen network from one epoch to the next."""
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
    """Run the frozen part of a network once for each clip, and keep it.

    For a :class:`~mmvidattn.recognizers.FineTunedRecognizer3D` with
    ``freeze='spatial'`` or ``freeze='backbone'``. The features that its
    frozen part gives are written to disk in the first epoch; in the next ones
    neither is a video opened, nor does this part run. It goes for
    validation and test as well, each with the views of its own pipeline, and
    over several processes, runs and resumed runs.
    :class:`~mmvidattn.engine.SafeRunner` wraps the datasets in
    :class:`~mmvidattn.datasets.FeatureCacheDataset`.

    Features are found by the content of the video, the segment, the pipeline,
    the options of the backbone and the preprocessor, the frozen weights and
    ``dtype``: what has changed is computed anew. A video is hashed again if
    its size or its time of change is another one. Not part of it are the
    device and the versions of packages, which may round otherwise or decode
    other pixels: clear the folder after a change of decoder.

    The frozen part runs clip by clip and without autocast, so that features do
    not depend on the clips around them.

    Args:
        cache_dir: Folder of the features, which runs may share.
        num_variants: Where the training pipeline draws at random: so many
            fixed outcomes of each video, which take turns from epoch to
            epoch. With 1 it is always the same, without augmentation. By
            default such a pipeline is an error. What draws from generators of
            its own, not of Python, numpy and torch, is not seen, and must not
            be used.
        dtype: Of the features on disk, 'float32' or 'float16'.
        max_gb: Gigabytes under ``cache_dir`` that are enough; None for any
            number.
    """

    def __init__(self,
                 cache_dir: str,
                 num_variants: Count | None = None,
                 dtype: Literal['float32', 'float16'] = 'float32',
                 max_gb: Positive | None = None) -> None:
        self.num_variants = num_variants
        # Of a training, in which what is frozen stays.
        self._settings: dict | None = None
        self._said: dict[str, tuple[int, int]] = {}
        self.writer = FeatureWriter(cache_dir, dtype, max_gb)

    def before_train(self, runner: Runner) -> None:
        if (self.num_variants or 1) > 1 and not isinstance(
                runner.train_loop, EpochBasedTrainLoop):
            raise ValueError(
                'num_variants of cached features take turns from epoch to '
                'epoch, and need train_cfg with by_epoch=True, got '
                f'{type(runner.train_loop).__name__}')
        self._settings = self._describe(runner)
        self._open(runner, runner.train_dataloader)
        self._say_size(runner)

    def before_train_epoch(self, runner: Runner) -> None:
        for dataset in feature_caches_of(runner.train_dataloader.dataset):
            dataset.set_epoch(runner.epoch)

    def after_train_epoch(self, runner: Runner) -> None:
        self._say_counts(runner, 'training')

    def before_val(self, runner: Runner) -> None:
        self._open(runner, runner.val_dataloader)

    def after_train(self, runner: Runner) -> None:
        self._settings = None

    def after_val(self, runner: Runner) -> None:
        self._say_counts(runner, 'validation')

    def before_test(self, runner: Runner) -> None:
        self._open(runner, runner.test_dataloader)
        self._say_size(runner)

    def after_test(self, runner: Runner) -> None:
        self._say_counts(runner, 'test')

    def _open(self, runner: Runner, loader: DataLoader) -> None:
        settings = self._settings or self._describe(runner)
        for dataset in feature_caches_of(loader.dataset):
            dataset.open_cache(self.writer.root, settings, self.num_variants)

    def _describe(self, runner: Runner) -> dict:
        """What the features depend on; the model gets the writer."""
        model = unwrap(runner.model)
        if not hasattr(model, 'describe_frozen'):
            raise ValueError(
                'cached features need model.type FineTunedRecognizer3D with '
                f"freeze='spatial' or 'backbone', got {type(model).__name__}")
        settings = dict(model.describe_frozen(),
                        dtype=str(self.writer.dtype).removeprefix('torch.'))
        model.write_features(self.writer)
        return settings

    def _say_size(self, runner: Runner) -> None:
        found = self.writer.measure()
        runner.logger.info(
            f'cached features: {self.writer.root} has '
            f'{megabytes(self.writer.size)} of '
            f'{sum(one["files"] for one in found)} clips, of {len(found)} '
            'pipelines or frozen networks (mmvidattn feature-cache '
            f'{self.writer.root} lists and clears them)')

    def _say_counts(self, runner: Runner, what: str) -> None:
        writer = self.writer
        counts = writer.take_counts()
        # Most epochs are as the one before.
        if counts != self._said.get(what):
            self._said[what] = counts
            runner.logger.info(
                f'cached features: {what}, {counts[0]} clips from disk, '
                f'{counts[1]} computed; {megabytes(writer.size)} in '
                f'{writer.root}')
