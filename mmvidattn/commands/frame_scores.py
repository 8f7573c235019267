# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Draw the scores of each frame of a video, like Fig. 4 of LAPS."""
import argparse
import json
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from torch import nn

from ..apis import get_model
from ..apis.labels import find_labels, label_of
from ..apis.runner import one_line_errors
from ..utils.printable import echo
from ..visualization.frame_scores import draw_frame_scores
from .clips import named_model, read_clip


class Scores(NamedTuple):
    """Frames of a clip, and class probabilities of the frames and the clip."""
    frames: np.ndarray  # [T, H, W, 3], uint8
    of_frames: np.ndarray  # [T, K]
    of_clip: np.ndarray  # [K]


def score_frames(model: nn.Module, video: str | Path) -> Scores:
    """Score the frames of a video's clip.

    Args:
        model: Model from :func:`mmvidattn.get_model`, whose head has
            ``frame_scores``, such as ``LAPSHead``.
        video: Path of a video file.

    Raises:
        FileNotFoundError: If the file does not exist.
        ValueError: If the head does not score frames.
    """
    if not hasattr(model.cls_head, 'frame_scores'):
        raise ValueError('the head must score frames, such as LAPSHead, got '
                         f'{type(model.cls_head).__name__}')
    frames, data = read_clip(model, video)
    batch = model.data_preprocessor(data, False)
    with torch.no_grad():
        feats, _ = model.extract_feat(batch['inputs'])
        logits = model.cls_head.frame_scores(feats)[0].float()
    return Scores(frames, logits.softmax(-1).cpu().numpy(),
                  logits.mean(0).softmax(-1).cpu().numpy())


def class_of(text: str, labels: list[str], num_classes: int) -> int:
    """Parse the name or number of a class."""
    if text in labels:
        return labels.index(text)
    if text.isdecimal() and int(text) < num_classes:
        return int(text)
    raise ValueError(f'--label must be a class of the model or a number below '
                     f'{num_classes}, got {text!r}')


def run(args: argparse.Namespace) -> None:
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
        label = label_of(labels, index)
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
