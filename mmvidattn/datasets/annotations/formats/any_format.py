# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Reading and writing of annotation files in any format."""
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from ....utils.arguments import Positive, check_arguments
from ....utils.text_files import refuse_pickle
from .. import segment_csv
from ..labeled_videos import similar_names
from ..video_segment import VideoSegment, checked, own_name, read_text
from . import activitynet, elan, label_studio
from .base import Annotations, Format, VideoInfo, distinct_ids, merge
from .summary import compare
from .videos import VideoFolder


def _read_csv(path: Path, columns: Mapping[str, str] | None = None,
              fps: float | None = None) -> Annotations:
    found = Annotations(segment_csv.read_segment_csv(
        path, columns, fps, points=True), format='csv')
    for segment in found.segments:
        subset = segment.subset if segment.subset != 'all' else None
        found.add_video(segment.video, subset=subset)
    if columns and fps:
        found.remarks.append(f'{path}: start and end are frame numbers at '
                             f'{fps:g} fps')
    return found


# Formats by name, in the order in which a file is compared with them.
FORMATS = {
    'csv': Format('csv', '.csv', _read_csv, lambda annotations, path:
                  segment_csv.write_segment_csv(annotations.segments, path),
                  segment_csv.recognizes, ('empty videos', ),
                  ('columns', 'fps')),
    'elan': Format('ELAN', '.eaf', elan.read, elan.write, elan.recognizes,
                   ('scores', 'subsets', 'points'), ('tiers', ), True),
    'label-studio': Format(
        'Label Studio', '.json', label_studio.read, label_studio.write,
        label_studio.recognizes, ('several subsets', 'one frame'), ('fps', )),
    'activitynet': Format(
        'ActivityNet', '.json', activitynet.read, activitynet.write,
        activitynet.recognizes, ('several subsets', )),
}
# Characters of a file that recognize its format.
MAX_START = 20_000
# Characters that XML cannot express, or that separate lines.
CONTROL = re.compile('[\x00-\x1f\x7f\ud800-\udfff\ufffe\uffff]')


def _format(name: str) -> Format:
    if name not in FORMATS:
        raise ValueError(
            f'format must be one of {", ".join(FORMATS)}, got {name!r}. Save '
            'a table of the events, and name its columns: --columns video='
            "'Media file' start='Start (s)' end='Stop (s)' label=Behavior")
    return FORMATS[name]


def recognize(path: Path) -> str:
    """Return the format of a file.

    Raises:
        ValueError: If no format fits.
    """
    start = read_text(path)[:MAX_START].lstrip()
    if not start:
        raise ValueError(f'{path} is empty')
    if FORMATS['csv'].recognizes(start):
        return 'csv'
    if label_studio.is_other_export(start):
        raise ValueError(f'{path} is a JSON_MIN, CSV or TSV export of Label '
                         'Studio, which lacks frame rates: export as JSON')
    for name, kind in FORMATS.items():
        if kind.recognizes(start):
            return name
    if start.startswith('{"id"'):
        raise ValueError(
            f'{path} has events of stream --events, which do not name their '
            'video: write a table of them with predict --segments')
    header = {own_name(name.strip(' "\r'))
              for name in re.split('[,;\t]', start.partition('\n')[0])}
    lacks = [name for name in segment_csv.NEEDED if name not in header]
    reason = 'no format recognized' if len(lacks) > 2 else (
        f'no column {" and no column ".join(lacks)}')
    raise ValueError(
        f'{path}: {reason} in {start[:40]!r}; the formats are '
        f'{", ".join(FORMATS)}. A csv has a header with the columns video, '
        'start, end and label; --columns names the columns of another table. '
        'The lists of published data sets are read by mmvidattn prepare '
        "(THUMOS'14, TVSeries, EPIC-Kitchens, EGTEA)")


@check_arguments
def read_annotations(path: str | Path, format: str | None = None, *,
                     videos: str | Path | None = None,
                     fps: Positive | None = None,
                     columns: Mapping[str, str] | None = None,
                     tiers: Sequence[str] | None = None) -> Annotations:
    """Read annotations of any format.

    Args:
        path: File, or a folder of files of one format.
        format: Name in ``FORMATS``. Defaults to the format that fits the
            content.
        videos: Folder of the videos. Segments then have the paths of their
            videos relative to this folder. In the result, ``videos`` has the
            frame rate, duration and size of the files where annotations state
            none, and ``problems`` lists where the two differ.
        fps: Frames per second, for files that count frames and state no rate.
            Defaults to the rate of the program, 24 for Label Studio.
        columns: Columns of another program's table, see
            :func:`~..video_segment.read_table`. With ``fps``, the table has
            frame numbers.
        tiers: Names of the tiers of ELAN to read. Defaults to all.

    Raises:
        ValueError: If the file is invalid; the message names the entry.
    """
    refuse_pickle(path, 'a csv with the columns video, start, end and label')
    folder = None if videos is None else VideoFolder(videos)
    options = {name: value for name, value in dict(
        fps=fps, columns=columns, tiers=tiers).items() if value is not None}
    annotations = _read(
        Path(path), 'csv' if format is None and columns else format, options)
    for segment in annotations.segments:
        # A file may name a video that has blanks in its name.
        if not segment.video:
            raise ValueError(f'{segment.where}: the video is empty')
        _check_names(segment, segment.labels.values())
    annotations.remarks += similar_names('class', {
        one.label for one in annotations.segments if 'action' in one.labels})
    annotations.segments = checked(
        distinct_ids(annotations.segments), points=True)
    return annotations if folder is None else _find_videos(annotations, folder)


def _read(path: Path, format: str | None,
          options: Mapping[str, Any]) -> Annotations:
    if not path.is_dir():
        name = format or recognize(path)
        kind = _format(name)
        for option in options.keys() - {*kind.options, 'fps'}:
            known = (name for name, kind in FORMATS.items()
                     if option in kind.options)
            raise ValueError(f'{option} are for {", ".join(known)}, not for '
                             f'{name}')
        return kind.read(path, **{option: value for option, value in
                                  options.items() if option in kind.options})
    suffixes = {kind.suffix for kind in FORMATS.values()} if format is None \
        else {_format(format).suffix}
    files = sorted(file for file in path.rglob('*')
                   if file.suffix.lower() in suffixes and file.is_file())
    if not files:
        raise ValueError(f'{path} lacks files that end with '
                         f'{", ".join(sorted(suffixes))}')
    parts = {file: _read(file, format, options) for file in files}
    kinds = {part.format: file for file, part in parts.items()}
    if len(kinds) > 1:
        raise ValueError(
            f'{path} has files of several formats: ' + ', '.join(
                f'{file.name} ({kind})' for kind, file in kinds.items()))
    return merge(parts)


def _check_names(segment: VideoSegment, names: Iterable) -> None:
    for text in map(str, names):
        if not text or text != text.strip() or CONTROL.search(text):
            raise ValueError(
                f'{segment.where}: names of videos, classes and subsets must '
                'not be empty, begin or end with a blank, or contain control '
                f'characters, got {text!r}')


def _find_videos(annotations: Annotations, folder: VideoFolder) -> Annotations:
    """Name videos by their paths in a folder, and add their facts."""
    names = {video: folder.find(video) for video in annotations.videos}
    annotations.missing = [
        video for video, name in names.items() if name is None]
    known = {name: folder.info(name) for name in names.values() if name}
    stated = annotations.videos
    annotations.videos = {}
    # A file may name a video in two ways.
    for video, info in stated.items():
        annotations.add_video(names[video] or video, **info._asdict())
    annotations.segments = [
        segment._replace(video=names[segment.video] or segment.video)
        for segment in annotations.segments]
    annotations.problems = compare(annotations, known)
    for name, info in known.items():
        annotations.add_video(name, **info._asdict())
    return annotations


@check_arguments(segments=Any, videos=Any)
def write_annotations(segments: Sequence[VideoSegment], path: str | Path,
                      format: str | None = None, *,
                      videos: Mapping[str, VideoInfo] | None = None,
                      fps: Positive | None = None,
                      url: str | None = None) -> list[str]:
    """Write segments in any format.

    Args:
        segments: Segments; ``labels`` must have the part ``action``, and for
            csv may have ``verb`` and ``noun`` instead.
        path: File. A folder for several videos in a format with one file per
            video (elan).
        format: Name in ``FORMATS``. Defaults to the format of the suffix.
        videos: Facts of videos by name. May contain videos without segments.
        fps: Frames per second of videos without a rate in ``videos``, for
            formats that count frames.
        url: Start of the addresses of videos in Label Studio. Defaults to
            its local files.

    Returns:
        A line for each kind of content that the format cannot express.

    Raises:
        ValueError: If a segment is invalid, a frame rate is unknown, or the
            format cannot be chosen.
    """
    path = Path(path)
    # Numbers of numpy become Python's.
    annotations = Annotations([one._replace(
        start=float(one.start), end=float(one.end),
        score=None if one.score is None else float(one.score))
        for one in checked(segments, points=True)], dict(videos or {}))
    for name in [*annotations.videos,
                 *(one.video for one in annotations.segments)]:
        annotations.add_video(name, fps=fps)
    name = choose_format(path, format, len(annotations.videos))
    kind = FORMATS[name]
    for one in annotations.segments:
        if 'action' not in one.labels and name != 'csv':
            raise ValueError(f'{one.where}: only csv has verbs and nouns, and '
                             f'{name} needs a label, got {one.labels}')
        _check_names(one, (one.video, *one.labels.values(), one.subset))
    if url is not None and name != 'label-studio':
        raise ValueError(f'url is for label-studio, not {name}; got {url!r}')
    files = {path: annotations} if not kind.one_video else {
        path / _file_name(video, kind.suffix) if _is_folder(path) else path:
        Annotations(group, {video: annotations.videos[video]})
        for video, group in annotations.by_video().items()}
    for file, part in files.items():
        kind.write(part, file, **({} if url is None else dict(url=url)))
    return describe_losses(annotations, kind)


def describe_losses(annotations: Annotations, kind: Format) -> list[str]:
    """Return a line for each kind of content that a format cannot express."""
    groups = annotations.by_video()
    segments = annotations.segments
    counts = {
        'scores': (sum(one.score is not None for one in segments),
                   'scores left out'),
        'subsets': (sum(one.subset != 'all' for one in segments),
                    'subsets of segments left out'),
        'points': (sum(one.is_point for one in segments),
                   'point events get the shortest possible duration'),
        'empty videos': (sum(not group for group in groups.values()),
                         'videos without segments left out'),
        'several subsets': (
            sum(len({one.subset for one in group}) > 1
                for group in groups.values()),
            'videos with several subsets get the first one'),
        'one frame': ('one frame' in kind.lacks and sum(
            stop == start + 1 for start, stop in (
                label_studio.frames_of(one, annotations.videos[one.video].fps)
                for one in segments)),
            'segments of one frame become point events')}
    return [f'{kind.title}: {number} {what}'
            for name, (number, what) in counts.items()
            if number and name in kind.lacks]


def choose_format(path: Path, format: str | None, num_videos: int) -> str:
    """Return ``format``, or the name of the only format with the suffix."""
    if format is None:
        suffix = path.suffix.lower()
        names = [name for name, kind in FORMATS.items()
                 if kind.suffix == suffix]
        if len(names) != 1:
            raise ValueError(f'give the format of {path} (--to): one of '
                             f'{", ".join(names or FORMATS)}')
        format = names[0]
    kind = _format(format)
    if kind.one_video and num_videos > 1 and not _is_folder(path):
        raise ValueError(f'{kind.title} has a file for each video: for '
                         f'{num_videos} videos, {path} must be a folder')
    return format


def _is_folder(path: Path) -> bool:
    return path.is_dir() or not path.suffix


def _file_name(video: str, suffix: str) -> str:
    """Return the name of a video's annotation file."""
    parts = [part for part in re.split(r'[/\\]+', video)
             if part not in ('', '.', '..')]
    name = re.sub(r'[:*?"<>|]', '_', '/'.join(parts))
    return f'{name}{suffix}'
