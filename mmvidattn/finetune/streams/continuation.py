# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Train a detector further with marks of its events."""
import csv
import io
import re
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from ...apis.models import load_config
from ...datasets.annotations.custom.labeled_videos import count, some
from ...datasets.annotations.custom.marks_csv import (
    Mark,
    apply_marks,
    known_spans,
    read_marks,
)
from ...datasets.annotations.custom.segment_csv import write_segment_csv
from ...datasets.annotations.formats import VideoFolder
from ...datasets.annotations.video_names import VideoNames
from ...datasets.annotations.video_segment import VideoSegment
from ...utils.files import write_atomically
from ...utils.lines import read_lines
from ...utils.printable import echo
from ..console import no_prints
from ..epochs import fit_epochs
from ..options import FineTuneOptions
from ..work_dir import read_notes
from .choice import EXTRACTION
from .features import build_extractor, write_features
from .plan import StreamPlan, read_events

SPLITS = 'train', 'val', 'test'
SPANS = 'train_spans.csv'
# Factor on the learning rate of the first training.
RATE = 0.3


class Lists(NamedTuple):
    """Videos and labels in the list files of a work directory.

    Attributes:
        videos: Videos of each split.
        events: Events of each split.
        spans: Labeled parts of those training videos whose other parts have no
            labels.
    """
    videos: dict[str, list[str]]
    events: dict[str, list[VideoSegment]]
    spans: dict[str, list[tuple[float, float]]]

    def write(self, folder: Path) -> None:
        """Write the lists to a folder."""
        folder.mkdir(parents=True, exist_ok=True)
        for split, videos in self.videos.items():
            write_atomically(folder / f'{split}_videos.txt',
                             '\n'.join([*videos, '']).encode())
            write_segment_csv(self.events[split], folder / f'{split}.csv')
        if self.spans:
            text = io.StringIO()
            rows = csv.writer(text, lineterminator='\n')
            rows.writerow(['video', 'start', 'end'])
            rows.writerows([video, *span] for video, spans in
                           self.spans.items() for span in spans)
            write_atomically(folder / SPANS, text.getvalue().encode())


def read_lists(out: Path) -> Lists:
    """Read the lists of a work directory."""
    videos = {split: [line for line in read_lines(
        out / f'data/{split}_videos.txt') if line] for split in SPLITS
        if (out / f'data/{split}_videos.txt').is_file()}
    spans: dict[str, list[tuple[float, float]]] = {}
    path = out / 'data' / SPANS
    if path.is_file():
        for row in csv.DictReader(read_lines(path)):
            spans.setdefault(row['video'], []).append(
                (float(row['start']), float(row['end'])))
    return Lists(videos, {split: read_events(out, split) for split in videos},
                 spans)


def correct_lists(lists: Lists, marks: Sequence[Mark], root: Path,
                  classes: Sequence[str]) -> Lists:
    """Correct the events of each split by the marks of its videos.

    A marked video that belongs to no split is added to the training videos.
    Only its marked parts count as labeled.

    Args:
        lists: Lists of the first training.
        marks: Marks. Marks of live sources are left out.
        root: Folder of the videos.
        classes: Class names, the background first.

    Raises:
        ValueError: If a class is unknown, or a video does not exist.
    """
    marks = [mark for mark in marks if not mark.began]
    unknown = sorted({mark.label for mark in marks} - {*classes[1:]})
    if unknown:
        raise ValueError(
            f'marks must have the classes {", ".join(classes[1:])}, got '
            f'{some(unknown)}: train with new classes from the start')
    everything = [video for side in lists.videos.values() for video in side]
    known, folder = VideoNames(everything), VideoFolder(root)
    names = {}
    for name in dict.fromkeys(mark.video for mark in marks):
        found = known.find(name) or folder.find(name)
        if found is None and Path(name).is_file():
            found = str(Path(name).resolve())
        if found is None:
            raise ValueError(f'the marked video {name} is not a file, and '
                             f'{root} has no video of this name')
        names[name] = found
    marks = [mark._replace(video=names[mark.video]) for mark in marks]
    new = {video: spans for video, spans in known_spans(marks).items()
           if video not in everything or video in lists.spans}
    videos, events = {}, {}
    for split, side in lists.videos.items():
        if split == 'train':
            side = list(dict.fromkeys([*side, *new]))
        videos[split] = side
        events[split] = apply_marks(
            lists.events[split],
            [mark for mark in marks if mark.video in side])
    spans = {video: sorted([*lists.spans.get(video, ()), *new.get(video, ())])
             for video in [*lists.spans, *new]}
    return Lists(videos, events, spans)


def prepare_continuation(options: FineTuneOptions) -> dict:
    """Write the lists and the config of a run that continues another one.

    Returns:
        Content of ``finetune.json``.

    Raises:
        ValueError: If the earlier run is not complete, or the marks do not fit
            it.
    """
    earlier, out = options.continued, options.out
    notes = read_notes(earlier)
    kind = notes.get('kind')
    if kind is None or not notes.get('done'):
        raise ValueError('--continue needs the work directory of a complete '
                         f'run with --stream, got {earlier}')
    marks = read_marks(options.source)
    root = Path(load_config(earlier / 'config.py').videos)
    before = read_lists(earlier)
    classes = [*read_lines(earlier / 'data/classes.txt')]
    lists = correct_lists(before, marks, root, classes)
    lists.write(out / 'data')
    shutil.copy(earlier / 'data/classes.txt', out / 'data')
    added = [video for video in lists.videos['train']
             if video not in before.videos['train']]
    echo(f'{count(marks, "mark")}: ' + '; '.join(
        f'{split}: {len(before.events[split])} events before, '
        f'{len(lists.events[split])} now' for split in lists.videos)
        + (f'; new videos: {some(added)}' if added else ''))
    spent = 0.
    if kind == 'features':
        spent = _write_features(options, lists, root, classes) / 60
    epochs = options.epochs
    if epochs == 'auto':
        _write_config(options, lists, kind, 1)
        with no_prints():
            epochs, _ = fit_epochs(
                load_config(out / 'config.py'), max(
                    options.minutes - spent, EXTRACTION * options.minutes))
    _write_config(options, lists, kind, epochs)
    echo(count(epochs, 'epoch'))
    return dict(options=options.fixed(), videos=len(marks), kind=kind,
                reason=f'continues {earlier}', continues=str(earlier))


def _write_features(options: FineTuneOptions, lists: Lists, root: Path,
                    classes: list[str]) -> float:
    """Write the features of new videos, and the targets of all.

    Returns:
        Seconds that this took.
    """
    earlier, data = options.continued, options.out / 'data'
    shutil.copytree(earlier / 'data/rgb', data / 'rgb', dirs_exist_ok=True)
    network = load_config(earlier / 'config.py').online.extractors.rgb
    events = [one for side in lists.events.values() for one in side]
    return write_features(
        StreamPlan(root, lists.videos, events, classes, {}),
        build_extractor(network.config, network.checkpoint), data,
        lists.spans)


def _write_config(options: FineTuneOptions, lists: Lists, kind: str,
                  epochs: int) -> None:
    """Write the earlier config with other lists, weights and epochs."""
    earlier, out = options.continued, options.out
    text = (earlier / 'config.py').read_text('utf-8')
    for name, value in dict(data_root=str((out / 'data').resolve()),
                            max_epochs=epochs).items():
        line = f'{name} = {value!r}'
        text, number = re.subn(rf'(?m)^{name} = .*$', lambda _: line, text)
        if number != 1:
            raise ValueError(f'{earlier / "config.py"} must have one line '
                             f'that sets {name}, got {number}')
    lr = options.lr or RATE * load_config(
        earlier / 'config.py').optim_wrapper.optimizer.lr
    text = text.rstrip() + f'''

# Continues {earlier.name}.
load_from = {str((earlier / "best.pth").resolve())!r}
optim_wrapper = dict(optimizer=dict(lr={float(f"{lr:.3g}")!r}))
'''
    if kind == 'pixels' and lists.spans and "['labeled_spans']" not in text:
        text += ("train_dataloader['dataset']['labeled_spans'] = "
                 f"f'{{data_root}}/{SPANS}'\n")
    write_atomically(out / 'config.py', text.encode())
