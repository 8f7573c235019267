# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Inputs of networks: optical flow, and images for other networks than ours.
"""
import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from pkgutil import resolve_name
from typing import Any, Literal

import cv2
import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from ..utils.arguments import Count, Positive, check_arguments
from ..utils.checkpoint import load_checkpoint
from ..utils.remote_files import HUB, hub_file, match_hub

# PIL's interpolations.
RESAMPLE = {0: 'nearest', 2: 'bilinear', 3: 'bicubic'}
_CALLABLE = re.compile(r'[A-Za-z_][\w.]*:[A-Za-z_][\w.]*')
Side = Count | tuple[Count, Count]
FLOWS = 'dis', 'tvl1', 'farneback'
FlowMethod = Literal[FLOWS]


def is_network(config: Any) -> bool:
    """Return True for a network or its name, but not for a config."""
    if isinstance(config, nn.Module):
        return True
    text = str(config)
    return text.startswith(HUB) or bool(_CALLABLE.fullmatch(text))


def find_network(config: str | nn.Module, checkpoint: str | Path | None
                 ) -> tuple[nn.Module, str]:
    """Build a network.

    Args:
        config: Network; MODULE:CALLABLE, a network that is imported from the
            module, or that a function of the module returns; or
            ``hf://OWNER/MODEL@REVISION``, a network of transformers.
        checkpoint: Weights: a file, or ``hf://OWNER/MODEL@REVISION``. None
            keeps the network's weights.

    Returns:
        The network, and its name for errors.
    """
    if isinstance(config, nn.Module):
        model, name = config, type(config).__name__
    elif config.startswith(HUB):
        model, name = HubNetwork(config), config
    else:
        try:
            target, name = resolve_name(config), config
        except (ImportError, AttributeError) as error:
            raise ValueError(f'{config} must be MODULE:CALLABLE that can be '
                             f'imported: {error}') from error
        is_function = callable(target) and not isinstance(target, nn.Module)
        model = target() if is_function else target
        if not isinstance(model, nn.Module):
            raise ValueError(f'{config} must return an nn.Module, got a '
                             f'{type(model).__name__}')
    if checkpoint is not None:
        load_checkpoint(model, checkpoint)
    return model, name


class HubNetwork(nn.Module):
    """Network of transformers, with the input that its processor describes.

    The features are the pooled output of the network, or else the mean of its
    tokens. No code of the repository is run.

    Args:
        name: ``hf://OWNER/MODEL@REVISION``, with a commit as the revision.

    Attributes:
        image_input: Arguments of :class:`ImageInput`.
        clip_len: Images in a clip, or None for networks of images.

    Raises:
        ValueError: If the name has no revision, weights of the network are
            missing, or the repository does not describe the input.
        OSError: If the Hub cannot be reached and its cache lacks the files.
    """

    def __init__(self, name: str) -> None:
        super().__init__()
        match = match_hub(name)
        try:
            from transformers import AutoModel
        except ImportError as error:
            raise ImportError(f'{name} needs transformers: pip install '
                              'transformers') from error
        self.model, info = AutoModel.from_pretrained(
            match['repo'], revision=match['revision'],
            trust_remote_code=False, use_safetensors=True,
            output_loading_info=True)
        if missing := sorted(info['missing_keys']):
            raise ValueError(
                f'{name} lacks {len(missing)} tensors that this version of '
                f'transformers expects, such as {missing[0]}, and would start '
                'from random values there; convert the file with mmvidattn '
                'convert (configs/start_weights.md), or use another version')
        config = self.model.config
        self.clip_len = getattr(config, 'frames_per_clip', None) or getattr(
            config, 'num_frames', None)
        self.argument = self.model.main_input_name
        # Only the features of V-JEPA's encoder are needed.
        self.options = dict(skip_predictor=True) if hasattr(
            self.model, 'predictor') else {}
        self.image_input = dict(
            _processor_input(name),
            takes='frames' if self.clip_len is None else 'clips')

    def forward(self, x: Tensor) -> Tensor:
        """Map images [B, C, H, W] or clips [B, C, T, H, W] to [B, D]."""
        # Video networks of transformers take [B, T, C, H, W].
        x = x.transpose(1, 2) if x.dim() == 5 else x
        y = self.model(**{self.argument: x}, **self.options)
        pooled = getattr(y, 'pooler_output', None)
        return y.last_hidden_state.mean(dim=1) if pooled is None else pooled


def _processor_input(name: str) -> dict[str, Any]:
    """Read the input of a network from the config of its processor."""
    try:
        path = hub_file(f'{name}/video_preprocessor_config.json')
    except OSError:
        path = hub_file(f'{name}/preprocessor_config.json')
    config = json.loads(path.read_text('utf-8'))

    def side(key: str) -> int | tuple[int, int] | None:
        size = config.get(key)
        if isinstance(size, dict):
            size = size.get('shortest_edge') or (size['height'], size['width'])
        return size

    scale = config.get('rescale_factor', 1 / 255) if config.get(
        'do_rescale', True) else 1
    normalized = config.get('do_normalize', True)
    mean, std = (config[f'image_{part}'] if normalized else [value]
                 for part, value in (('mean', 0.), ('std', 1.)))
    if config.get('offset'):
        # ViViT's processor maps to [-1, 1] first.
        mean = [value + 1 for value in mean]
    return dict(
        mean=mean, std=std, value_range=255 * scale,
        resize=side('size') if config.get('do_resize', True) else None,
        crop=side('crop_size') if config.get('do_center_crop') else None,
        interpolation=RESAMPLE[config.get('resample', 2)])


@check_arguments
@dataclass(frozen=True)
class ImageInput:
    """Conversion of uint8 images to the input of a network.

    Images are resized and rounded to bytes like in image libraries, cropped at
    the center, scaled to the range from 0 to ``value_range``, and normalized.

    Attributes:
        takes: Input of the network. 'frames' are images [B, C, H, W], whose
            features are averaged over a clip; flow fields are concatenated
            along the channels (x, y, x, y, ...). 'clips' are [B, C, T, H, W].
        mean: Mean in units of ``value_range``: one number, or one for each
            channel in the order of ``color``.
        std: Standard deviation in the same format.
        value_range: Largest value: 1, or 255 for values of bytes.
        resize: Short side in pixels, or (height, width). None keeps the size.
        crop: Side in pixels, or (height, width). None does not crop.
        interpolation: Interpolation for resizing: 'bilinear' or 'bicubic',
            with anti-aliasing, or 'nearest', without.
        color: Order of the channels, 'RGB' or 'BGR'. Ignored for flow.

    Raises:
        ValueError: If a value is not allowed.
    """
    takes: Literal['frames', 'clips']
    mean: float | Sequence[float]
    std: float | Sequence[float]
    value_range: Positive = 1.
    resize: Side | None = None
    crop: Side | None = None
    interpolation: Literal['bilinear', 'bicubic', 'nearest'] = 'bilinear'
    color: Literal['RGB', 'BGR'] = 'RGB'

    def __call__(self, clip: Sequence[np.ndarray]) -> Tensor:
        """Convert RGB images or flow fields, uint8 ``(H, W, 3 or 2)``.

        Returns:
            [T, 3, H, W] for a network that takes 'frames', [1, 2 T, H, W] if
            these are flow, and [1, C, T, H, W] for one that takes 'clips'.

        Raises:
            ValueError: If the images are smaller than the crop, or mean or
                std are for another number of channels.
        """
        images = clip[0][None] if len(clip) == 1 else np.stack(clip)
        # Copy only what torch cannot share.
        images = np.require(images, requirements=['C', 'W'])
        x = torch.from_numpy(images).permute(0, 3, 1, 2)
        is_flow = x.shape[1] == 2
        x = self._crop(self._resize(x)).float()
        if self.color == 'BGR' and not is_flow:
            x = x.flip(1)
        if is_flow and self.takes == 'frames':
            x = x.flatten(0, 1)[None]
        x = x * (self.value_range / 255)
        x = (x - self._by_channel('mean', x)) / self._by_channel('std', x)
        return x.transpose(0, 1)[None] if self.takes == 'clips' else x

    def _resize(self, x: Tensor) -> Tensor:
        if self.resize is None:
            return x
        height, width = x.shape[-2:]
        if isinstance(self.resize, Sequence):
            size = tuple(self.resize)
        else:
            # Round the long side as torchvision and transformers do.
            short = min(height, width)
            size = (self.resize * height // short,
                    self.resize * width // short)
        if size == (height, width):
            return x
        nearest = self.interpolation == 'nearest'
        x = F.interpolate(
            x.float(), size=size,
            mode='nearest-exact' if nearest else self.interpolation,
            antialias=not nearest)
        return x.round().clamp(0, 255)

    def _crop(self, x: Tensor) -> Tensor:
        if self.crop is None:
            return x
        height, width = (self.crop if isinstance(self.crop, Sequence) else
                         (self.crop, self.crop))
        top, left = (round((have - want) / 2) for have, want in zip(
            x.shape[-2:], (height, width)))
        if top < 0 or left < 0:
            raise ValueError(
                f'crop must fit into the images, which are {x.shape[-2]} x '
                f'{x.shape[-1]}, got {self.crop}; enlarge them with resize')
        return x[..., top:top + height, left:left + width]

    def _by_channel(self, name: str, x: Tensor) -> Tensor:
        values = getattr(self, name)
        values = torch.tensor(
            values if isinstance(values, Sequence) else [values]).float()
        if len(values) not in (1, x.shape[1]):
            raise ValueError(f'{name} must be one number, or one for each of '
                             f'{x.shape[1]} channels, got {len(values)}')
        return values[:, None, None]


def quantize_flow(flow: np.ndarray, bound: float) -> np.ndarray:
    """Convert flow in pixels ``(H, W, 2)`` to bytes; 128 means zero."""
    scaled = np.rint((flow.clip(-bound, bound) + bound) * (255 / (2 * bound)))
    return scaled.astype(np.uint8)


class OpticalFlow:
    """Estimator of the flow between consecutive images.

    Args:
        method: 'dis' (fast), 'tvl1' (used for published features; needs
            opencv-contrib) or 'farneback'. OpenCV's TV-L1 for the CPU has the
            settings of the CUDA version that denseflow uses, and also a
            median filter.
        side: Short side in pixels to which images are resized.
        bound: Flow in pixels that is mapped to 0 (negative) or 255 (positive).

    Raises:
        ValueError: If this OpenCV lacks the method.
    """

    def __init__(self, method: FlowMethod = 'dis', side: float = 180,
                 bound: float = 20.) -> None:
        self.side = side
        self.bound = bound
        if method == 'dis':
            self._estimator = cv2.DISOpticalFlow_create(
                cv2.DISOPTICAL_FLOW_PRESET_MEDIUM)
        elif method == 'farneback':
            self._estimator = cv2.FarnebackOpticalFlow_create()
        elif hasattr(cv2, 'optflow'):
            self._estimator = cv2.optflow.DualTVL1OpticalFlow_create()
        else:
            raise ValueError("flow='tvl1' needs opencv-contrib: pip install "
                             'opencv-contrib-python')

    def __call__(self, images: Sequence[np.ndarray]) -> list[np.ndarray]:
        """Convert n + 1 RGB images ``(H, W, 3)`` to n flows ``(h, w, 2)``."""
        scale = self.side / min(images[0].shape[:2])
        gray = [
            cv2.resize(
                cv2.cvtColor(image, cv2.COLOR_RGB2GRAY), None, fx=scale,
                fy=scale, interpolation=cv2.INTER_AREA) for image in images
        ]
        return [
            quantize_flow(self._estimator.calc(a, b, None), self.bound)
            for a, b in zip(gray, gray[1:])
        ]
