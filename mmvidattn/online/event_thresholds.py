# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Thresholds of events for each class, and their file."""
import json
import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from ..utils.arguments import NotNegative, check_arguments
from ..utils.files import write_atomically
from ..utils.printable import brief
from ..version import __version__
from . import MIN_DURATION

FORMAT = 1
# With fewer events, the thresholds of a class are rough.
FEW = 10


@check_arguments
@dataclass(frozen=True)
class ClassThresholds:
    """Rules for the events of one class.

    Attributes:
        on: Score that starts an action.
        off: Score below which an action ends, at most ``on``.
        smoothing: Time constant in seconds of the moving average of the
            scores (:func:`smooth`). Defaults to 0, no smoothing.
        min_duration: Seconds that an action must last. Defaults to 0.5.

    Raises:
        ValueError: If a value is out of range.
    """
    on: float
    off: float
    smoothing: NotNegative = 0.
    min_duration: NotNegative = MIN_DURATION

    def __post_init__(self) -> None:
        check_on_off(self.on, self.off)


@dataclass(frozen=True)
class Thresholds:
    """Tuned thresholds, from :func:`mmvidattn.evaluation.tune_thresholds`.

    Attributes:
        classes: :class:`ClassThresholds` of each tuned class as a dict. This
            is ``thresholds`` of :class:`EventDetector`.
        objective: Name of the optimized measure, such as 'f1@50'.
        value: Value of the measure on the tuning videos; nan if undefined.
        values: Value of the measure for each class.
        about: Further facts, such as the number of videos.
    """
    classes: dict[str, dict[str, float]]
    objective: str
    value: float
    values: dict[str, float] = field(default_factory=dict)
    about: dict[str, Any] = field(default_factory=dict)

    @property
    def warning(self) -> str:
        """Warning about classes with few events, or an empty text."""
        few = [f'{name} ({number})' for name, number in
               self.about.get('events', {}).items() if 0 < number < FEW]
        return ('thresholds are rough, because they are tuned on fewer than '
                f'{FEW} events of {", ".join(few)}' if few else '')

    def write(self, path: str | Path) -> None:
        """Write a JSON file, which :func:`read_thresholds` reads."""
        # JSON has no nan.
        value, *values = (None if math.isnan(x) else x
                          for x in (self.value, *self.values.values()))
        write_atomically(path, json.dumps(dict(
            format=FORMAT, versions=dict(mmvidattn=__version__),
            objective=self.objective, value=value,
            values=dict(zip(self.values, values)), about=self.about,
            classes=self.classes), indent=1, ensure_ascii=False) + '\n')


def read_thresholds(path: str | Path) -> Thresholds:
    """Read the file of :meth:`Thresholds.write`.

    Raises:
        ValueError: If the file is missing or damaged, has a newer format, or a
            threshold is out of range.
    """
    try:
        content = json.loads(Path(path).read_text('utf-8'))
        if content.get('format', math.inf) > FORMAT:
            raise ValueError(
                'it is not a file of tune-thresholds, or of a newer mmvidattn '
                f'than {__version__}')
        value, *values = (
            math.nan if x is None else float(x)
            for x in (content['value'], *content['values'].values()))
        return Thresholds(
            check_class_thresholds(content['classes']),
            str(content['objective']), value,
            dict(zip(content['values'], values)), dict(content['about']))
    except (OSError, KeyError, TypeError, AttributeError, RecursionError,
            UnicodeDecodeError, ValueError) as error:
        raise ValueError(f'cannot read the thresholds {path}: '
                         f'{brief(error)}') from error


def check_class_thresholds(thresholds: Mapping[str, Mapping[str, float]]
                           ) -> dict[str, dict[str, float]]:
    """Return thresholds by class name with all entries.

    Raises:
        ValueError: If an entry is unknown, missing or out of range.
    """
    checked = {}
    for name, entries in thresholds.items():
        try:
            checked[str(name)] = asdict(ClassThresholds(**entries))
        except (TypeError, ValueError) as error:
            raise ValueError(
                f'thresholds of {name!r} must be numbers on, off, smoothing '
                f'and min_duration, got {entries}: {error}') from None
    return checked


def check_on_off(on: float, off: float) -> None:
    """Raise a ``ValueError`` if a threshold is out of range."""
    if not 0 < off <= on <= 1:
        raise ValueError('events need 0 < off <= on <= 1, got '
                         f'on={on}, off={off}')


def smooth(previous: np.ndarray, scores: np.ndarray,
           seconds: np.ndarray, elapsed: float) -> np.ndarray:
    """Compute the next value of an exponential moving average.

    The weight of an earlier score falls by the factor e in ``seconds``.

    Args:
        previous: Average at the previous step, [*, K].
        scores: Scores of this step, [K].
        seconds: Time constants, [*, K]. With 0, the result equals ``scores``.
        elapsed: Seconds since the previous step.

    Returns:
        Average in the dtype of ``scores``, [*, K].
    """
    with np.errstate(divide='ignore'):
        keep = np.exp(-elapsed / seconds).astype(scores.dtype)
    return scores + keep * (previous - scores)
