# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
import copy
from contextlib import nullcontext
from typing import Any, Literal, NamedTuple

import torch
from mmaction.models import Recognizer3D
from mmaction.registry import MODELS
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _NormBase

from ..layers.lora import add_lora
from ..utils.arguments import Natural, check_arguments
from ..utils.feature_cache import FeatureWriter, weights_digest

Part = Literal['backbone', 'spatial']
# Options of a backbone that do not affect its frozen features, but only
# initialization and training.
NO_EFFECT = {'init_cfg', 'init_std', 'embed_init_std', 'patch_init', 'with_cp',
             'drop_rate', 'drop_path_rate', 'drop_path_scale'}
NO_EFFECT_ON_SPATIAL = {'num_temporal_layers'}


class FrozenFeatures(NamedTuple):
    """Features of the frozen layers for each view of samples, [B, V, *]."""
    values: Tensor


@MODELS.register_module()
@check_arguments
class FineTunedRecognizer3D(Recognizer3D):
    """``Recognizer3D`` with frozen layers or LoRA.

    Its tensors have the same names as in ``Recognizer3D``, so each class loads
    checkpoints of the other. Checkpoints with LoRA have additional tensors,
    which :func:`mmvidattn.get_model` merges.

    The frozen layers stay in evaluation mode, without dropout or changes of
    running statistics. With LoRA, the running statistics of the backbone do
    not change either.

    With :class:`~mmvidattn.engine.FeatureCacheHook`, the features of the
    frozen layers are cached on disk. With ``'spatial'``, the frozen layers
    process one clip at a time in training, even without the hook, so that the
    final weights are equal with and without the cache.

    Args:
        freeze: ``'backbone'`` trains only the head (a linear probe, if the
            head is one linear layer); ``'spatial'`` trains the head and the
            temporal encoder of a factorized encoder, such as ``ViViT`` with
            ``model='fact_encoder'``; a number n freezes the first n blocks
            and the layers before them. Defaults to None, no freezing.
        lora: Arguments of :func:`mmvidattn.layers.add_lora`, such as
            ``dict(rank=8)``; only these updates of the backbone are trained.
            Defaults to None, no LoRA.
        **kwargs: Arguments of ``Recognizer3D``.

    Attributes:
        feature_writer: Writer of cached features, set by the hook; None
            without the hook.

    Raises:
        ValueError: If both options are set; if the backbone has fewer than
            ``freeze`` blocks; or if it lacks ``get_layer_depth`` or a
            temporal encoder that ``freeze`` needs.
    """

    def __init__(self, backbone: dict, *args: Any,
                 freeze: Part | Natural | None = None,
                 lora: dict | None = None,
                 data_preprocessor: dict | None = None,
                 **kwargs: Any) -> None:
        options = copy.deepcopy((backbone, data_preprocessor))
        super().__init__(backbone, *args, data_preprocessor=data_preprocessor,
                         **kwargs)
        self._backbone, self._data_preprocessor = options
        if lora is not None and freeze is not None:
            raise ValueError('lora already freezes the backbone, got '
                             f'freeze={freeze!r} as well')
        self.freeze = freeze
        self.feature_writer: FeatureWriter | None = None
        self._frozen: list[nn.Module] = []
        if lora is not None:
            self.backbone.requires_grad_(False)
            for name in add_lora(self.backbone, **lora):
                module = self.backbone.get_submodule(name)
                module.lora_down.requires_grad_(True)
                module.lora_up.requires_grad_(True)
            self._frozen = [module for module in self.backbone.modules()
                            if isinstance(module, _NormBase)]
        elif freeze == 'backbone':
            self.backbone.requires_grad_(False)
            self._frozen = [self.backbone]
        elif freeze == 'spatial':
            self._freeze_spatial()
        elif freeze is not None:
            self._freeze_blocks(freeze)

    def _freeze_spatial(self) -> None:
        trained = getattr(self.backbone, 'temporal_encoder', None)
        if trained is None:
            raise ValueError(
                "freeze='spatial' needs a backbone with a spatial and a "
                "temporal encoder, such as ViViT with model='fact_encoder' "
                'and num_temporal_layers from 1, got a '
                f'{type(self.backbone).__name__} without')
        self.backbone.requires_grad_(False)
        trained.requires_grad_(True)
        self._frozen = _frozen_modules(self.backbone)

    def _freeze_blocks(self, number: int) -> None:
        backbone = self.backbone
        if not hasattr(backbone, 'get_layer_depth'):
            raise ValueError(
                f'freeze={number!r} needs a backbone with get_layer_depth, '
                f'which {type(backbone).__name__} lacks; freeze="backbone" '
                'works with any backbone')
        depths = {name: backbone.get_layer_depth(name)
                  for name, _ in backbone.named_parameters()}
        # The first depth is for layers before the blocks, the last one for
        # layers after them.
        most = next(iter(depths.values()))[1] - 2
        if number > most:
            raise ValueError(
                f'freeze must be at most {most}, the number of blocks of this '
                f'{type(backbone).__name__}, got {number}')
        for name, parameter in backbone.named_parameters():
            if depths[name][0] <= number:
                parameter.requires_grad_(False)
        self._frozen = _frozen_modules(backbone)

    def train(self, mode: bool = True) -> nn.Module:
        """Set the mode of all layers except frozen ones."""
        super().train(mode)
        for module in self._frozen:
            module.eval()
        return self

    def describe_frozen(self) -> dict[str, Any]:
        """Describe the frozen layers, for the key of cached features.

        Returns:
            The options of the backbone and the preprocessor, and a hash of
            the weights, in plain types.

        Raises:
            ValueError: If the features cannot be cached, because of
                ``freeze``, a neck, or ``blending`` of clips.
        """
        if self.freeze not in ('backbone', 'spatial'):
            raise ValueError("cached features need freeze='spatial' or "
                             f"'backbone', got {self.freeze!r}")
        if self.with_neck:
            raise ValueError('cached features need a model without a neck, '
                             f'got a {type(self.neck).__name__}')
        if getattr(self.data_preprocessor, 'blending', None) is not None:
            raise ValueError(
                'data_preprocessor.blending mixes clips at random: cached '
                'features need blending=None')
        ignored, weights = NO_EFFECT, self.backbone.state_dict(keep_vars=True)
        if self.freeze == 'spatial':
            ignored = NO_EFFECT | NO_EFFECT_ON_SPATIAL
            trained = self.backbone.temporal_encoder.state_dict(keep_vars=True)
            trained = {id(value) for value in trained.values()}
            weights = {name: value for name, value in weights.items()
                       if id(value) not in trained}
        return dict(
            freeze=self.freeze,
            backbone={name: value for name, value in self._backbone.items()
                      if name not in ignored},
            data_preprocessor=self._data_preprocessor,
            weights=weights_digest(weights))

    def write_features(self, writer: FeatureWriter) -> None:
        """Write the features of samples with a ``feature_file`` from now on.
        """
        self.feature_writer = writer

    def forward(self, inputs: Tensor, data_samples: list | None = None,
                mode: str = 'tensor', **kwargs: Any) -> Any:
        """Run the model, with cached features if the samples have them."""
        if self.training and self.freeze == 'spatial' or any(
                'frozen_features' in sample or 'feature_file' in sample
                for sample in data_samples or ()):
            # An exported program gets clips without data samples.
            samples = data_samples or [{}] * len(inputs)
            inputs = FrozenFeatures(torch.stack([
                self._features_of(clips, sample)
                for clips, sample in zip(inputs, samples)]))
        return super().forward(inputs, data_samples, mode, **kwargs)

    def extract_feat(self, inputs: Tensor | FrozenFeatures,
                     stage: str = 'neck', data_samples: list | None = None,
                     test_mode: bool = False) -> tuple:
        """Extract features, from clips or from frozen features."""
        if not isinstance(inputs, FrozenFeatures):
            return super().extract_feat(inputs, stage, data_samples, test_mode)
        x = inputs.values.flatten(0, 1)
        if self.freeze == 'spatial':
            x = self.backbone.forward_temporal(x)
        if stage == 'head' and self.with_cls_head:
            x = self.cls_head(x)
        return x, {}

    def _features_of(self, clips: Tensor, sample: Any) -> Tensor:
        """Map views [V, C, T, H, W] of a sample to features [V, *]."""
        writer = self.feature_writer
        if 'frozen_features' in sample:
            writer.num_read += 1
            # Remove the features from the sample, so that metrics and result
            # files do not contain them.
            return sample.pop('frozen_features')
        if 'feature_file' not in sample:
            return self._encode(clips)
        # Remove the padding: a batch pads all clips to the largest clip.
        clips = clips[tuple(map(slice, sample.clips_shape))]
        features = writer.round(self._encode(clips))
        writer.num_computed += 1
        writer.write(sample.feature_file, features)
        return features

    @torch.no_grad()
    def _encode(self, clips: Tensor) -> Tensor:
        encode = self.backbone
        if self.freeze == 'spatial':
            encode = self.backbone.forward_spatial
        with nullcontext() if self.feature_writer is None else torch.autocast(
                clips.device.type, enabled=False):
            # Process one clip at a time, because the batch size affects
            # rounding.
            features = [encode(clip) for clip in clips.split(1)]
        if not isinstance(features[0], Tensor):
            raise ValueError(
                'cached features need a backbone that returns a tensor, but '
                f'{type(self.backbone).__name__} returns a '
                f'{type(features[0]).__name__}')
        return torch.cat(features)


def _frozen_modules(module: nn.Module) -> list[nn.Module]:
    """Return the modules whose parameters are all frozen."""
    return [part for part in module.modules()
            if (parameters := [*part.parameters()])
            and not any(parameter.requires_grad for parameter in parameters)]
