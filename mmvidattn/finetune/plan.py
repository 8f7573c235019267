# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Plan of a run: check the videos, split them, and warn of problems.

An entry of a plan is a clip (a whole video or a segment with a label), or with
``--stream`` an event in a long video.
"""
import math
import statistics
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from rich.console import Console
from rich.progress import Progress

from ..datasets.annotations.labeled_videos import (
    SPLITS,
    LabeledVideo,
    read_labeled_videos,
    similar_names,
)
from ..datasets.annotations.segment_csv import write_segment_csv
from ..datasets.annotations.video_segment import (
    VideoSegment,
    describe,
    fit_to_videos,
)
from ..datasets.check_files import check_files
from ..datasets.prepare.feature_targets import BACKGROUND
from ..datasets.video_facts import VideoFacts, read_facts
from ..utils.files import write_atomically
from ..utils.printable import count, echo, first_few
from .events import read_events
from .options import FineTuneOptions
from .split import describe_copies, find_copies, split_videos

# A class with fewer training videos or events triggers a warning.
FEW = 10


class Plan(NamedTuple):
    """Videos of a run.

    Attributes:
        options: Options of the run.
        root: Folder that the files are relative to.
        number: Number of entries in the source, including unreadable ones.
        splits: Entries of ``train``, ``val`` and ``test``. Empty splits are
            left out.
        videos: Files of each split. With ``--stream``, some lack events.
        classes: Class names in the order of the labels; with ``--stream``,
            the background first.
        facts: Duration, frame rate and size of each file.
        suffix: File suffix of the lists: csv with segments or several labels,
            or else txt.
    """
    options: FineTuneOptions
    root: Path
    number: int
    splits: dict[str, list[LabeledVideo]]
    videos: dict[str, list[str]]
    classes: list[str]
    facts: dict[str, VideoFacts]
    suffix: str

    @property
    def counts(self) -> list[int]:
        """Number of training entries of each class, without background."""
        labels = Counter(one.label for one in self.splits['train'])
        return [labels[name] for name in self.classes if labels[name]]

    @property
    def chance(self) -> float | None:
        """Validation accuracy of always predicting the most frequent class."""
        labels = Counter(one.label for one in self.splits.get('val', ()))
        if not labels or self.options.stream or self.options.multi_label:
            return None
        return max(labels.values()) / labels.total()

    @property
    def tests(self) -> float:
        """Work of the tests after the training, in validations."""
        if 'val' not in self.splits or 'test' not in self.splits:
            return 1.
        val, test = (sum(self.facts[file].duration for file in
                         self.videos[name]) for name in ('val', 'test'))
        # Thresholds are tuned on the validation videos.
        tunes = self.options.stream or self.options.multi_label
        return round(test / val + tunes, 3)

    def seconds(self, *splits: str) -> list[float]:
        """Return the length of each entry of the splits."""
        return [one.end - one.start for name in splits
                for one in self.splits[name]]

    @property
    def median_seconds(self) -> float:
        """Median length of the training entries, rounded to 3 digits."""
        return float(f'{statistics.median(self.seconds("train")):.3g}')

    def segments(self, split: str) -> list[VideoSegment]:
        """Return the entries of a split as segments."""
        return [VideoSegment('', one.file, one.start, one.end,
                             dict(action=one.label), '')
                for one in self.splits[split]]

    def write_lists(self, folder: Path) -> None:
        """Write the entries and videos of the splits and the class names."""
        folder.mkdir(parents=True, exist_ok=True)

        def write(name: str, lines: Iterable[str]) -> None:
            write_atomically(folder / name, '\n'.join([*lines, '']).encode())

        for name, side in self.splits.items():
            if self.suffix == 'csv':
                write_segment_csv(self.segments(name), folder / f'{name}.csv')
            else:
                write(f'{name}.txt', (
                    f'{one.file} {self.classes.index(one.label)}'
                    for one in side))
            if self.options.stream:
                write(f'{name}_videos.txt', self.videos[name])
        write('classes.txt', self.classes)


def read_source(options: FineTuneOptions) -> tuple[
        Path, list[LabeledVideo], dict[str, str], list[str]]:
    """Read the clips or events of a user, without opening the videos.

    Returns:
        Folder that the files are relative to, clips or events, subset of each
        listed long video, and remarks about skipped entries and likely
        mistakes.
    """
    if options.stream:
        return options.videos, *read_events(options)
    root, videos, remarks = read_labeled_videos(
        options.source, options.multi_label, options.columns, options.fps,
        options.more)
    return root, videos, {}, remarks


def make_plan(options: FineTuneOptions) -> Plan:
    """Read, check and split the videos, and print a summary.

    Raises:
        ValueError: If the source is invalid, no video can be read, or a class
            lacks training videos.
    """
    noun = 'event' if options.stream else 'segment'
    root, entries, listed, remarks = read_source(options)
    number, named = len(entries), {one.label for one in entries}
    facts, bad = check_videos(root, [one.file for one in entries] + [*listed],
                              options)
    entries = [one for one in entries if one.file in facts]
    is_whole = all(one.is_whole for one in entries)
    entries, fitted = _fit(entries, facts, options.stream)
    if not entries:
        raise ValueError(f'no {noun} starts within a readable video, out of '
                         + count(number, noun))
    classes = sorted({one.label for one in entries})
    if lost := sorted(named - {*classes}):
        remarks.append(f'{count(lost, "class")} without a readable video '
                       f'left out: {first_few(lost)}')
    _print_summary(root, entries, facts, options.stream)
    if bad:
        echo(f'{count(bad, "unreadable video")} left out:')
        for name, why in sorted(bad.items()):
            echo(f'  {name}: {why}')
    if fitted:
        echo(f'{noun}s: {fitted}')
    copies = find_copies(root, facts)
    splits = split_videos(entries, options.val_share, options.seed, copies,
                          with_test=options.stream)
    videos = {name: list(dict.fromkeys(one.file for one in side))
              for name, side in splits.items()}
    if options.stream:
        for name in 'val', 'test':
            for video in {*videos.get(name, ())} & {*videos.get('train', ())}:
                raise ValueError(f'{video} must have one subset, got train '
                                 f'and {name}')
        remarks += _add_background(videos, copies, {
            name: subset for name, subset in listed.items() if name in facts})
    remarks += describe_copies(copies, videos)
    remarks += [one for one in similar_names('class', classes)
                if one not in remarks]
    echo('; '.join(f'{name}: {count(side, "video")}' for name, side in (
        videos if options.stream else splits).items()))
    for remark in remarks:
        echo(f'note: {remark}')
    # Errors in the splits follow the remarks, which may explain them.
    for warning in find_warnings(splits, options):
        echo(f'note: {warning}')
    return Plan(options, root, number, splits, videos,
                [BACKGROUND] * options.stream + classes, facts,
                'txt' if is_whole and not options.multi_label else 'csv')


def progress_bar() -> Progress:
    """Return a bar on stderr, if it is a terminal, that does not stay."""
    console = Console(stderr=True)
    return Progress(console=console, transient=True,
                    disable=not console.is_terminal)


def check_videos(root: Path, files: Iterable[str], options: FineTuneOptions
                 ) -> tuple[dict[str, VideoFacts], dict[str, str]]:
    """Decode all files, and return facts of good and problems of bad ones.

    Raises:
        ValueError: If no file can be read.
    """
    files = dict.fromkeys(files)
    bad = {name: 'file not found' for name in files
           if not (root / name).is_file()}
    paths = {str(root / name): name for name in files if name not in bad}
    with progress_bar() as bar:
        task = bar.add_task('Checking the videos', total=len(paths))
        problems = check_files(
            [*paths], max(1, options.workers), options.timeout,
            not options.quick, lambda: bar.advance(task)) if paths else ()
    bad |= {paths[path]: problem for path, problem in problems}
    # Safe in this process: the check above has decoded these files.
    facts = {name: read_facts(root / name) for name in files
             if name not in bad}
    bad |= {name: 'a single image' for name, one in facts.items()
            if one.frames < 2}
    if bad.keys() == files.keys():
        name, why = next(iter(bad.items()))
        raise ValueError(f'none of {count(bad, "video")} can be read; first '
                         f'error: {name}: {why}')
    return {name: one for name, one in facts.items() if name not in bad}, bad


def _fit(entries: Sequence[LabeledVideo], facts: Mapping[str, VideoFacts],
         overlaps: bool) -> tuple[list[LabeledVideo], str]:
    """Cut entries at the end of their files, and describe the changes.

    ``overlaps`` also counts overlapping entries of one class.
    """
    durations = {name: one.duration for name, one in facts.items()}
    kept, counts = fit_to_videos([VideoSegment(
        str(i), one.file, one.start,
        durations[one.file] if one.end == math.inf else one.end,
        dict(action=one.label) if overlaps else {}, '')
        for i, one in enumerate(entries)], durations)
    return [entries[int(segment.id)]._replace(end=segment.end)
            for segment in kept], describe(counts)


def _add_background(videos: Mapping[str, list[str]], copies: Mapping[str, str],
                    listed: Mapping[str, str]) -> Iterator[str]:
    """Add listed videos without events, and yield a remark for each other one.

    They are background of their subset, or belong to the split of their copy.
    """
    split_of = {copies[video]: split for split, side in videos.items()
                for video in side}
    used = {video for side in videos.values() for video in side}
    for name, subset in listed.items():
        if name in used:
            continue
        split = split_of.setdefault(copies[name], SPLITS.get(subset, 'train'))
        if split in videos:
            videos[split].append(name)
        else:
            yield (f'{name} left out: no video of the subset {subset} has '
                   'events')


def _print_summary(root: Path, entries: Sequence[LabeledVideo],
                   facts: Mapping[str, VideoFacts], stream: bool) -> None:
    """Print classes, lengths and sizes."""
    lengths = defaultdict(list)
    for one in entries:
        lengths[one.label].append(one.end - one.start)
    total = sum(one.duration for one in facts.values())
    echo(f'{root}: ' + (
        f'{count(entries, "event")} in {count(facts, "video")} of '
        f'{total / 60:.1f} minutes' if stream else
        f'{count(entries, "video")} of {count(lengths, "class")}'))
    for name, each in sorted(lengths.items()):
        echo(f'  {name}: {len(each)}, {min(each):.1f} to {max(each):.1f} s'
             + (f', {100 * sum(each) / total:.0f} % of the time'
                if stream else ''))
    every = sum(lengths.values(), [])
    sizes = Counter(f'{one.width}x{one.height}' for one in facts.values())
    rates = sorted({f'{one.fps:.4g}' for one in facts.values()}, key=float)
    echo(f'lengths {min(every):.1f} to {max(every):.1f} s (median '
         f'{statistics.median(every):.1f}); sizes '
         + first_few(f'{size} ({n})' for size, n in sizes.most_common())
         + f'; {" to ".join(rates[:1] + rates[1:][-1:])} frames/s')


def find_warnings(splits: Mapping[str, Sequence[LabeledVideo]],
                  options: FineTuneOptions) -> list[str]:
    """Return warnings about a dataset that is small, unbalanced or untested.

    Raises:
        ValueError: If a class lacks training videos, or clips have fewer than
            two classes.
    """
    noun = 'event' if options.stream else 'video'
    counts = {name: Counter(one.label for one in splits.get(name, ()))
              for name in ('train', 'val', 'test')}
    train, val, test = counts.values()
    totals = train + val + test
    classes = sorted(totals)
    if not train:
        raise ValueError('no video has the subset train')
    if len(classes) < 2 and not options.stream:
        raise ValueError(
            f'all videos have the same class, {first_few(classes)}: add '
            'videos of a second class, such as one for everything else')
    if unseen := [f'{name} (all in {"val" if val[name] else "test"})'
                  for name in classes if not train[name]]:
        raise ValueError(
            f'{count(unseen, "class")} without training {noun}s: '
            f'{first_few(unseen)}; add training {noun}s, or remove the '
            f'{noun}s of these classes')
    warnings = []
    if single := [name for name in classes if totals[name] == 1]:
        warnings.append(
            f'{count(single, "class")} with a single {noun}, which is used '
            f'for training and cannot be validated: {first_few(single)}')
    if few := [f'{name} ({train[name]})' for name in classes
               if train[name] < FEW]:
        warnings.append(
            f'{count(few, "class")} with fewer than {FEW} training {noun}s: '
            f'{first_few(few)}; add more {noun}s, as different as possible')
    tunes = options.stream or options.multi_label
    if not val:
        warnings.append(
            'no validation videos: the last checkpoint is kept instead of the '
            'best one' + ', and thresholds are not tuned' * tunes
            + ', and there are no metrics' * (not test))
    elif tunes and not test:
        warnings.append(
            'nothing is left to test: the metrics are of the validation '
            'videos, whose thresholds are tuned, and therefore too high')
    for name, kind in ('val', 'validation'), ('test', 'test'):
        if lacking := [label for label in classes if counts[name]
                       and not counts[name][label] and label not in single]:
            warnings.append(f'no {kind} {noun}s of {first_few(lacking)}')
    measured = (test or val).total()
    if 0 < measured < 5 * FEW:
        warnings.append(f'metrics are rough: each of {count(measured, noun)} '
                        f'counts {100 / measured:.0f} %')
    largest, rarest = max(train.values()), min(train.values())
    if largest >= 3 * rarest and not options.stream:
        warnings.append('unbalanced classes, with '
                        f'{rarest} to {largest} videos: see --balance')
    return warnings
