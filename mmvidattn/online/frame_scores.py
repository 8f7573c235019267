# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Scores of each step of videos, and the folder that stores them."""
import json
import re
from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

import numpy as np

from ..utils.arguments import check_finite
from ..utils.files import replacing, write_atomically
from ..utils.printable import brief

FILE, FORMAT = 'scores.json', 1


class FrameScores(NamedTuple):
    """Class probabilities [T, K] of the steps of a video.

    Step ``t`` lasts from ``t / rate`` to ``(t + 1) / rate`` seconds.
    """
    rate: float
    scores: np.ndarray


@dataclass
class ScoredVideos:
    """Scores of the steps of several videos.

    Attributes:
        classes: Names of the K classes.
        ignore: Indices of classes that are not actions.
        videos: :class:`FrameScores` of each video by name.
    """
    classes: Sequence[str]
    ignore: Container[int]
    videos: dict[str, FrameScores] = field(default_factory=dict)

    def write(self, folder: str | Path) -> None:
        """Write ``scores.json`` and a ``.npy`` file for each video."""
        folder = Path(folder)
        entries: dict[str, dict] = {}
        for number, (name, (rate, scores)) in enumerate(self.videos.items()):
            file = f'{number}_{re.sub(r"[^a-zA-Z0-9.-]+", "_", name)}.npy'
            entries[name] = dict(rate=rate, file=file)
            with replacing(folder / file) as part:
                with part.open('wb') as out:
                    np.save(out, np.asarray(scores, np.float32))
        write_atomically(folder / FILE, json.dumps(dict(
            format=FORMAT, classes=list(self.classes),
            ignore=[i for i in range(len(self.classes)) if i in self.ignore],
            videos=entries), indent=1, ensure_ascii=False) + '\n')


def read_frame_scores(folder: str | Path) -> ScoredVideos:
    """Read a folder of :meth:`ScoredVideos.write`.

    Raises:
        ValueError: If a file is missing or damaged, or a score is not finite.
    """
    folder = Path(folder)
    where = folder / FILE
    try:
        content = json.loads(where.read_text('utf-8'))
        if content['format'] > FORMAT:
            raise ValueError(f'format {content["format"]} is newer than '
                             f'{FORMAT}; update mmvidattn')
        classes = [str(name) for name in content['classes']]
        found = ScoredVideos(classes, {int(i) for i in content['ignore']})
        for name, entry in content['videos'].items():
            where = folder / entry['file']
            if Path(entry['file']).name != entry['file']:
                raise ValueError('files must be in the same folder')
            scores = np.load(where, allow_pickle=False)
            if scores.dtype.kind != 'f':
                raise ValueError(f'it must be of type float, got '
                                 f'{scores.dtype}')
            video = FrameScores(float(entry['rate']), scores)
            check_scores({name: video}, len(classes))
            found.videos[name] = video
    except FileNotFoundError as error:
        raise ValueError(
            f'cannot read the scores in {where}: No such file; give a folder '
            'of stream --scores, or scores/test of finetune') from error
    except (OSError, KeyError, TypeError, AttributeError, RecursionError,
            EOFError, ValueError) as error:
        raise ValueError(
            f'cannot read the scores of stream --scores in {where}: '
            f'{brief(error)}') from error
    return found


def check_scores(videos: Mapping[str, FrameScores],
                 num_classes: int) -> None:
    """Raise a ``ValueError`` if shapes differ or a score is not finite."""
    for name, (rate, scores) in videos.items():
        if scores.ndim != 2 or scores.shape[1] != num_classes:
            raise ValueError(f'scores of {name} must have shape [T, '
                             f'{num_classes}], got {list(scores.shape)}')
        if not 0 < rate < np.inf:
            raise ValueError(f'the rate of {name} must be positive, got '
                             f'{rate}')
        check_finite(**{f'scores of {name}': scores})
