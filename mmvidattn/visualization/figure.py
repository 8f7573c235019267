# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Files of matplotlib figures."""
from pathlib import Path

from matplotlib.figure import Figure

DPI = 120


def save_figure(figure: Figure, path: str | Path) -> None:
    """Write a figure, and create the folder if necessary."""
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=DPI)
