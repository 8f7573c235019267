# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Plan of a run: check the videos, split them, and warn of problems."""
import csv
import io
import statistics
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from rich.console import Console
from rich.progress import Progress

from ..datasets.annotations.custom.labeled_videos import (
    LabeledVideo,
    count,
    read_labeled_videos,
    similar_names,
    some,
)
from ..datasets.annotations.video_segment import (
    VideoSegment,
    describe,
    fit_to_videos,
)
from ..datasets.check_files import check_files
from ..datasets.video_facts import VideoFacts, read_facts
from ..utils.files import write_atomically
from ..utils.printable import echo
from .options import FineTuneOptions
from .split import describe_copies, find_copies, split_videos

# A class with fewer training videos triggers a warning.
FEW = 10


class Plan(NamedTuple):
    """Videos of a run.

    Attributes:
        root: Folder that the files are relative to.
        number: Number of videos in the source, including unreadable ones.
        splits: Videos of ``train``, ``val`` and ``test``. Empty splits are
            left out.
        classes: Class names in the order of the labels.
        facts: Duration, frame rate and size of each file.
        multi_label: Whether a video may have several entries with different
            labels.
    """
    root: Path
    number: int
    splits: dict[str, list[LabeledVideo]]
    classes: list[str]
    facts: dict[str, VideoFacts]
    multi_label: bool = False

    @property
    def suffix(self) -> str:
        """File suffix of the lists: csv with segments or labels, else txt."""
        is_whole = all(video.is_whole for side in self.splits.values()
                       for video in side)
        return 'txt' if is_whole and not self.multi_label else 'csv'

    @property
    def counts(self) -> list[int]:
        """Number of training videos of each class."""
        labels = Counter(video.label for video in self.splits['train'])
        return [labels[name] for name in self.classes]

    @property
    def clip_seconds(self) -> float:
        """Median length of the training clips, rounded to 3 digits."""
        median = statistics.median(
            _seconds(video, self.facts) for video in self.splits['train'])
        return float(f'{median:.3g}')

    def write_lists(self, folder: Path) -> None:
        """Write the lists of the splits and the class names to a folder."""
        for name, side in self.splits.items():
            write_atomically(folder / f'{name}.{self.suffix}',
                             self._list(side).encode())
        write_atomically(folder / 'label_map.txt',
                         '\n'.join([*self.classes, '']).encode())

    def _list(self, side: Sequence[LabeledVideo]) -> str:
        if self.suffix == 'txt':
            return ''.join(f'{video.file} {self.classes.index(video.label)}\n'
                           for video in side)
        text = io.StringIO()
        rows = csv.writer(text, lineterminator='\n')
        rows.writerow(['video', 'start', 'end', 'label'])
        for video in side:
            end = min(video.end, self.facts[video.file].duration)
            rows.writerow([video.file, f'{video.start:.3f}', f'{end:.3f}',
                           video.label])
        return text.getvalue()


def _seconds(video: LabeledVideo, facts: dict[str, VideoFacts]) -> float:
    """Return the length of a video or segment."""
    return min(video.end, facts[video.file].duration) - video.start


def make_plan(options: FineTuneOptions) -> Plan:
    """Read, check and split the videos, and print a summary.

    Raises:
        ValueError: If no video can be read, or a class lacks training videos.
    """
    root, videos, remarks = read_labeled_videos(
        options.source, options.multi_label, options.columns, options.fps,
        options.more)
    number = len(videos)
    facts, bad = check_videos(root, [video.file for video in videos],
                              options)
    classes = {video.label for video in videos}
    videos, cut = _fit_segments(
        [video for video in videos if video.file in facts], facts)
    if lost := sorted(classes - {video.label for video in videos}):
        remarks.append(f'{count(lost, "class")} without a readable video '
                       f'left out: {some(lost)}')
    if not videos:
        raise ValueError('no segment starts within a readable video, out of '
                         f'{number} segments')
    _print_summary(root, videos, facts)
    print_unreadable(bad)
    if cut:
        echo(f'segments: {cut}')
    copies = find_copies(root, facts)
    splits = split_videos(videos, options.val_share, options.seed, copies)
    remarks += describe_copies(copies, {
        name: [video.file for video in side]
        for name, side in splits.items()})
    if not options.multi_label:
        remarks += _several_classes(videos, copies)
    remarks += similar_names('class', classes)
    remarks += find_warnings(splits)
    echo('; '.join(f'{name}: {len(side)}' for name, side in splits.items()))
    for remark in remarks:
        echo(f'note: {remark}')
    return Plan(root, number, splits,
                sorted({video.label for video in videos}), facts,
                options.multi_label)


def check_videos(root: Path, files: Iterable[str], options: FineTuneOptions
                 ) -> tuple[dict[str, VideoFacts], dict[str, str]]:
    """Decode all files.

    Returns:
        Facts of the readable files, and faults of the other files.

    Raises:
        ValueError: If no file can be read.
    """
    files = dict.fromkeys(files)
    bad = {name: 'file not found' for name in files
           if not (root / name).is_file()}
    paths = {str(root / name): name for name in files if name not in bad}
    console = Console(stderr=True)
    with Progress(console=console, transient=True,
                  disable=not console.is_terminal) as bar:
        task = bar.add_task('Checking the videos', total=len(paths))
        faults = check_files(
            [*paths], max(1, options.workers), options.timeout,
            not options.quick, lambda: bar.advance(task)) if paths else ()
    bad |= {paths[path]: fault for path, fault in faults}
    if bad.keys() == files.keys():
        name, why = next(iter(bad.items()))
        raise ValueError(f'cannot read any of the {len(bad)} videos; first '
                         f'error: {name}: {why}')
    # Safe in this process: the check above has decoded these files.
    return {name: read_facts(root / name) for name in files
            if name not in bad}, bad


def print_unreadable(bad: dict[str, str]) -> None:
    """Print the unreadable files and their faults, if there are any."""
    if bad:
        echo(f'{count(bad, "unreadable video")} left out:')
        for name, why in sorted(bad.items()):
            echo(f'  {name}: {why}')


def _fit_segments(videos: Sequence[LabeledVideo], facts: dict[str, VideoFacts]
                  ) -> tuple[list[LabeledVideo], str]:
    """Cut segments at the end of their files, and describe the changes."""
    segments = [
        VideoSegment(str(i), video.file, video.start, video.end, {}, '')
        if not video.is_whole else None for i, video in enumerate(videos)]
    durations = {name: one.duration for name, one in facts.items()}
    kept, counts = fit_to_videos(
        [one for one in segments if one is not None], durations)
    ends = {int(one.id): one.end for one in kept}
    # Do not count segments without a given end as too long.
    is_open = sum(one is not None and one.end == float('inf')
                  for one in segments)
    counts['cut at the end of the video'] -= is_open
    fitted = [video if segments[i] is None else video._replace(end=ends[i])
              for i, video in enumerate(videos)
              if segments[i] is None or i in ends]
    return fitted, describe(+counts)


def _several_classes(videos: Sequence[LabeledVideo],
                     copies: Mapping[str, str]) -> Iterator[str]:
    """Yield a remark about equal videos or segments of several classes."""
    same = defaultdict(dict)
    for video in videos:
        same[copies[video.file], video.start, video.end].setdefault(
            video.label, video.file)
    several = [' and '.join(f'{file} ({label})'
                            for label, file in sorted(files.items()))
               for files in same.values() if len(files) > 1]
    if several:
        yield (f'{count(several, "video")} in more than one class: '
               f'{some(several)}')


def _print_summary(root: Path, videos: Sequence[LabeledVideo],
                   facts: dict[str, VideoFacts]) -> None:
    """Print classes, lengths and sizes."""
    classes = Counter(video.label for video in videos)
    lengths = [_seconds(video, facts) for video in videos]
    echo(f'{root}: {count(videos, "video")} of {count(classes, "class")}')
    for name, number in sorted(classes.items()):
        seconds = [length for video, length in zip(videos, lengths)
                   if video.label == name]
        echo(f'  {name}: {number}, {min(seconds):.1f} to {max(seconds):.1f} s')
    sizes = Counter(f'{one.width}x{one.height}' for one in facts.values())
    rates = [one.fps for one in facts.values()]
    echo(f'lengths {min(lengths):.1f} to {max(lengths):.1f} s (median '
         f'{statistics.median(lengths):.1f}); sizes '
         + some(f'{size} ({n})' for size, n in sizes.most_common())
         + f'; {min(rates):.4g} to {max(rates):.4g} frames/s')


def find_warnings(splits: dict[str, list[LabeledVideo]]) -> list[str]:
    """Return warnings about a dataset that is small, unbalanced or untested.

    Args:
        splits: Videos of each split.

    Raises:
        ValueError: If there are fewer than two classes, or a class has no
            training videos.
    """
    counts = {name: Counter(video.label for video in side)
              for name, side in splits.items()}
    train = counts.get('train', Counter())
    classes = sorted({label for one in counts.values() for label in one})
    if len(classes) < 2:
        raise ValueError(
            f'all videos have the same class, {some(classes)}: add videos of '
            'a second class, such as one for everything else')
    unseen = [name for name in classes if not train[name]]
    if unseen:
        raise ValueError(f'{count(unseen, "class")} without training videos: '
                         f'{some(unseen)}')
    warnings = []
    single = [name for name in classes
              if sum(one[name] for one in counts.values()) == 1]
    if single:
        warnings.append(
            f'{count(single, "class")} with a single video, which is used for '
            f'training and cannot be validated: {some(single)}')
    few = [f'{name} ({train[name]})' for name in classes if train[name] < FEW]
    if few:
        warnings.append(
            f'{count(few, "class")} with fewer than {FEW} training videos: '
            f'{some(few)}; add more videos, as different as possible')
    measured = counts.get('test') or counts.get('val')
    if 'val' not in splits:
        warnings.append('no validation videos: the last checkpoint is kept '
                        'instead of the best one'
                        + ('' if measured else ', and there are no metrics'))
    if measured:
        lacking = [name for name in classes
                   if not measured[name] and name not in single]
        if lacking:
            warnings.append(f'no test videos of {some(lacking)}')
        if measured.total() < 5 * FEW:
            warnings.append(
                'metrics are rough: each of '
                f'{count(measured.total(), "video")} counts '
                f'{100 / measured.total():.0f} %')
    largest, rarest = max(train.values()), min(train.values())
    if largest >= 3 * rarest:
        warnings.append('unbalanced classes, with '
                        f'{rarest} to {largest} videos: see --balance')
    return warnings
