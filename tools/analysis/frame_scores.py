# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Draw the scores of each frame of a video, like Fig. 4 of LAPS.

    python tools/analysis/frame_scores.py VIDEO \\
        --model laps_visformer_base2d_k400:A.pth \\
        --model laps_visformer_k400:B.pth --label 'skipping rope'

The image shows the frames of a clip above a curve for each model: the
probability of the class, from the logits of each frame. Without a checkpoint,
a model has random weights, and its scores are meaningless.
"""
import sys
from pathlib import Path

import numpy as np
import torch
from matplotlib.figure import Figure
from torch import Tensor, nn

from mmvidattn.apis.labels import find_labels, label_of
from mmvidattn.utils.exits import one_line_errors
from mmvidattn.visualization.style import save_figure

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
from tools.analysis import clips

FRAME_INCHES, CURVE_INCHES = 1.3, 2.


def score_frames(model: nn.Module, inputs: Tensor) -> Tensor:
    """Return the logits [T', K] of the frames of a clip."""
    if not hasattr(model.cls_head, 'frame_scores'):
        raise ValueError('the head must score frames, such as LAPSHead, got '
                         f'{type(model.cls_head).__name__}')
    with torch.no_grad():
        feats, _ = model.extract_feat(inputs)
        return model.cls_head.frame_scores(feats)[0].float().cpu()


def draw(path: Path, frames: np.ndarray, curves: list[np.ndarray],
         names: list[str], caption: str) -> None:
    """Write an image with a row of frames above a curve for each model."""
    T = len(frames)
    figure = Figure(figsize=(FRAME_INCHES * T, FRAME_INCHES + CURVE_INCHES),
                    layout='constrained')
    grid = figure.add_gridspec(2, T, height_ratios=(FRAME_INCHES,
                                                    CURVE_INCHES))
    for t, frame in enumerate(frames):
        axis = figure.add_subplot(grid[0, t])
        axis.imshow(frame)
        axis.set_axis_off()
    axis = figure.add_subplot(grid[1, :])
    for curve, name in zip(curves, names):
        # Plot the score of a frame below the middle of the frame.
        at = (np.arange(len(curve)) + 0.5) / len(curve) * T - 0.5
        axis.plot(at, curve, marker='o', label=name)
    axis.set(xlim=(-0.5, T - 0.5), ylim=(-0.03, 1.03), xticks=range(T),
             xlabel='frame', ylabel='score')
    axis.grid(alpha=0.3)
    axis.legend(fontsize=8)
    figure.suptitle(caption, fontsize=10, parse_math=False)
    save_figure(figure, path)


def main() -> None:
    parser = clips.make_parser(__doc__, 'frame_scores.png')
    parser.add_argument('--label', help="name or number of the class "
                        "(default: the last model's prediction)")
    args = parser.parse_args()
    with one_line_errors():
        names, scores, labels = [], [], []
        for text in args.model:
            name, model = clips.load_model(text, args)
            names.append(name)
            frames, inputs = clips.read_clip(model, args.video)
            scores.append(score_frames(model, inputs))
            labels = labels or find_labels(model)
        index = clips.class_of(args.label, scores[-1].mean(0), labels)
        label = label_of(labels, index)
        curves = [logits.softmax(-1)[:, index].numpy() for logits in scores]
        draw(args.out, frames, curves, names, f'{args.video.name}: {label}')
        for name, logits, curve in zip(names, scores, curves):
            clip = logits.mean(0).softmax(-1)[index]
            print(f'{name}: {label} {clip:.3f}; frames '
                  + ' '.join(f'{score:.3f}' for score in curve))


if __name__ == '__main__':
    main()
