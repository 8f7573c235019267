# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Color of each class, and files of figures.

Classes have the same color in plots, videos and the live page. It depends on
the place of a class in the model's list of actions.
"""
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from matplotlib.figure import Figure

DPI = 120
# Okabe and Ito's colors, for a light and a dark background, as in
# live/page.html.
COLORS = (('#0a6fb0', '#56b4e9'), ('#b86200', '#e69f00'),
          ('#00805c', '#2fc79a'), ('#b23f86', '#e78ac3'),
          ('#857000', '#f0e442'), ('#cf3f26', '#ff7f5c'),
          ('#5a50d0', '#a9a4ff'), ('#47525e', '#c9d1d9'))


def class_color(number: int, is_dark: bool = False) -> str:
    """Return the color of an action, for example '#0a6fb0'."""
    return COLORS[number % len(COLORS)][is_dark]


def save_figure(figure: 'Figure', path: str | Path) -> None:
    """Write a figure, and create the folder if necessary."""
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=DPI)
