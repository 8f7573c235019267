# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Image of the losses and accuracies of a training run."""
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path

from matplotlib.figure import Figure

from .figure import save_figure

SIZE_INCHES = 10., 3.6


def draw_training_curves(path: str | Path, training: Sequence[dict],
                         validation: Sequence[dict], chance: float | None,
                         metric: str, title: str) -> None:
    """Write an image of the loss, the accuracies and the learning rate.

    Args:
        path: Path of the image, a png.
        training: Training log, with ``epoch``, ``loss``, ``lr`` and
            ``top1_acc``, which are averaged over each epoch.
        validation: Validation log, with ``step`` (the epoch) and ``metric``.
        chance: Accuracy of always predicting the most frequent class, drawn as
            a line, or None.
        metric: Metric of the validation.
        title: Title of the curves of the accuracy.
    """
    figure = Figure(figsize=SIZE_INCHES)
    axes = figure.subplots(1, 3)
    figure.subplots_adjust(0.05, 0.14, 0.98, 0.9, wspace=0.3)
    for axis, name, label in zip(axes, ('loss', 'top1_acc', 'lr'),
                                 ('loss', title, 'learning rate')):
        epochs = defaultdict(list)
        for log in training:
            if name in log:
                epochs[log['epoch']].append(log[name])
        at = sorted(epochs)
        axis.plot(at, [sum(epochs[e]) / len(epochs[e]) for e in at],
                  marker='.', label='training')
        axis.set_title(label, fontsize=10)
        axis.set_xlabel('epoch')
        axis.grid(alpha=0.3)
    axes[0].set_ylim(bottom=0)
    axes[1].set_ylim(-0.03, 1.03)
    if validation:
        axes[1].plot([log['step'] for log in validation],
                     [log[metric] for log in validation],
                     marker='o', label='validation')
    if chance is not None:
        axes[1].axhline(chance, color='gray', linestyle='--',
                        label=f'chance ({100 * chance:.0f} %)')
    if validation or chance is not None:
        axes[1].legend(fontsize=8)
    save_figure(figure, path)
