# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Shape and number of the views of a config, for exports and complexity."""
from mmaction.registry import MODELS
from mmengine.config import Config

from ..utils.arguments import to_pair

CROPS = dict(CenterCrop=1, ThreeCrop=3, UniformThreeCrop=3, TenCrop=10)


def view_of(pipeline: list[dict]) -> tuple[tuple[int, int, int], int]:
    """Return the shape (T, H, W) and the number of views of a pipeline."""
    frames, side, views = None, None, 1
    for step in pipeline:
        if 'clip_len' in step:
            frames = step['clip_len']
            views *= step.get('num_clips', 1)
        if step['type'] in CROPS:
            side = step['crop_size']
            views *= CROPS[step['type']]
        elif step['type'] == 'RandomCrop':
            side = step['size']
        elif step['type'] == 'Resize' and not step.get('keep_ratio', True):
            side = step['scale']
    if frames is None or side is None:
        raise ValueError('the pipeline lacks clip_len or crop_size: use '
                         '--shape T H W')
    height, width = (side, side) if isinstance(side, int) else side[::-1]
    return (frames, height, width), views


def shape_of(cfg: Config) -> tuple[tuple[int, ...], int]:
    """Return the shape of a view and the number of views of a config.

    For an online detector: (window length, ) of features, or (1, H, W).
    """
    if cfg.model.type == 'OnlineActionDetector':
        backbone = cfg.model.backbone
        if backbone.type == 'OnlineVideoEncoder':
            return (1, *to_pair(backbone.encoder.get('img_size', 224))), 1
        # Networks without a long memory define the length in their class.
        long = backbone.get('long_memory_length')
        if long is None:
            long = MODELS.get(backbone.type).long_memory_length
        return (long + backbone.work_memory_length, ), 1
    return view_of(cfg.test_pipeline)
