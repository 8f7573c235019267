# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Draw the scores of each frame of a video (Fig. 4 of LAPS).

    mmvidattn frame-scores VIDEO \\
        --model laps_visformer_base2d_k400:A.pth \\
        --model laps_visformer_k400:B.pth --label 'skipping rope' \\
        --out frame_scores.png

The frames of the clip stand in a row, and under them a curve for each model:
the probability of the class by the logits of each frame. It takes the config's
validation pipeline, one clip of the video. Beside the picture goes a .json
with the figures. Without a checkpoint a model has fresh weights, whose scores
say nothing.
"""
import argparse
import json
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from torch import nn

from ..apis import get_model
from ..apis.labels import find_labels
from ..apis.runner import one_line_errors
from ..utils.printable import echo
from ..visualization.frame_scores import draw_frame_scores
from ._shared import (
    add_cfg_options,
    add_device,
    named_model,
    parser_of,
    read_clip,
)


class Scores(NamedTuple):
    """Frames of a clip, and the probabilities a model gives them."""
    frames: np.ndarray  # [T, H, W, 3], uint8
    of_frames: np.ndarray  # [T, K]
    of_clip: np.ndarray  # [K]


def score_frames(model: nn.Module, video: str | Path) -> Scores:
    """The scores of the frames of a video's clip.

    Args:
        model: Of :func:`mmvidattn.get_model`, with a head that has
            ``frame_scores``, such as ``LAPSHead``.
        video: A video file.

    Raises:
        FileNotFoundError: If there is no such file.
        ValueError: If the model has no scores of frames.
    """
    if not hasattr(model.cls_head, 'frame_scores'):
        raise ValueError(f'{type(model.cls_head).__name__} has no scores of '
                         'frames; LAPSHead has')
    data = read_clip(model, video)
    batch = model.data_preprocessor(data, False)
    with torch.no_grad():
        feats, _ = model.extract_feat(batch['inputs'])
        logits = model.cls_head.frame_scores(feats)[0].float()
    return Scores(data['inputs'][0][0].permute(1, 2, 3, 0).numpy(),
                  logits.softmax(-1).cpu().numpy(),
                  logits.mean(0).softmax(-1).cpu().numpy())


def class_of(text: str, labels: list[str], num_classes: int) -> int:
    """The number of a class that is given by name or number."""
    if text in labels:
        return labels.index(text)
    if text.isdecimal() and int(text) < num_classes:
        return int(text)
    raise ValueError(f'--label must be a class of the model or a number below '
                     f'{num_classes}, got {text!r}')


def parse_args(argv: Sequence[str] | None = None) -> argparse.Namespace:
    parser = parser_of(__doc__)
    parser.add_argument('video', type=Path, help='video file')
    parser.add_argument(
        '--model',
        action='append',
        required=True,
        metavar='CONFIG[:CHECKPOINT]',
        help='a model, by config file or its name; once or twice')
    parser.add_argument(
        '--label',
        help='class, by name or number (default: what the last model says)')
    add_cfg_options(parser)
    parser.add_argument('--out', type=Path, default=Path('frame_scores.png'))
    add_device(parser)
    return parser.parse_args(argv)


def main(argv: Sequence[str] | None = None) -> None:
    args = parse_args(argv)
    with one_line_errors():
        if args.out.suffix != '.png':
            raise ValueError(f'--out must be a .png, got {args.out}')
        names, scores, labels = [], [], []
        for source in args.model:
            config, checkpoint = named_model(source)
            model = get_model(config, checkpoint, args.device,
                              args.cfg_options)
            name = Path(checkpoint or config).stem
            names.append(f'{name} ({len(names) + 1})'
                         if name in names else name)
            scores.append(score_frames(model, args.video))
            labels = labels or find_labels(model)
        last = scores[-1]
        if args.label is None:
            index = int(last.of_clip.argmax())
        else:
            index = class_of(args.label, labels, last.of_clip.size)
        label = labels[index] if index < len(labels) else f'class {index}'
        draw_frame_scores(args.out, last.frames,
                          [s.of_frames[:, index] for s in scores], names,
                          f'{args.video.name}: {label}')
    result = dict(
        video=str(args.video),
        label=label,
        models={
            name: dict(
                frames=s.of_frames[:, index].tolist(),
                clip=float(s.of_clip[index]))
            for name, s in zip(names, scores)
        })
    args.out.with_suffix('.json').write_text(json.dumps(result, indent=2))
    for name, model in result['models'].items():
        echo(f'{name}: {label} {model["clip"]:.3f}; frames '
             + ' '.join(f'{score:.3f}' for score in model['frames']))
    echo(args.out)
