# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Average of the weights of a model that several processes share."""
from typing import Any

from mmengine.hooks import EMAHook
from mmengine.registry import MODELS
from mmengine.runner import Runner

from ..sharding.shards import cut_on_load, shared_tree


class ShardedEMAHook(EMAHook):
    """mmengine's ``EMAHook`` for :class:`~mmvidattn.engine.FullyShard`.

    Each process averages its own part. ``EMAHook`` copies the model, which
    torch does not support for sharded models.
    :class:`~mmvidattn.engine.SafeRunner` uses this hook where a config has
    ``EMAHook``.
    """

    def before_run(self, runner: Runner) -> None:
        self.src_model = shared_tree(runner.model.module)
        self.ema_model = MODELS.build(
            self.ema_cfg, default_args=dict(model=self.src_model))
        cut_on_load(self.ema_model)

    def after_load_checkpoint(self, runner: Runner, checkpoint: dict) -> None:
        # Start weights are copied later, because the model adapts them.
        if runner._resume:
            super().after_load_checkpoint(runner, checkpoint)

    def before_val_epoch(self, runner: Runner) -> None:
        self._copy_start_weights()
        super().before_val_epoch(runner)

    def before_test_epoch(self, runner: Runner) -> None:
        self._copy_start_weights()
        super().before_test_epoch(runner)

    def _copy_start_weights(self) -> None:
        """Copy the model, unless it has been averaged."""
        if self.ema_model.steps == 0:
            averages: dict[str, Any] = dict(
                self.ema_model.module.named_parameters())
            for name, parameter in self.src_model.named_parameters():
                averages[name].data.copy_(parameter.data)
