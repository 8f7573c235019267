# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Videos of a run: their unique names, and their shards."""
import csv
import json
import math
import os
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from ..datasets.video_facts import list_videos
from ..utils.files import write_new
from ..utils.lines import read_lines
from ..utils.remote_files import is_url, local_file

LIST_SUFFIXES = '.csv', '.parquet', '.txt'
FILE = 'manifest.parquet'
# Key of our part of the metadata of the file.
KEY = b'mmvidattn'
ROW_GROUP = 100_000


def arrow() -> Any:
    """Import pyarrow with its modules compute and parquet.

    Raises:
        ImportError: If pyarrow is not installed.
    """
    try:
        import pyarrow
        import pyarrow.compute
        import pyarrow.parquet
    except ImportError:
        raise ImportError('manifests and catalogs need pyarrow: pip install '
                          '"mmvidattn[corpus]"') from None
    return pyarrow


class Item(NamedTuple):
    """A video of a run.

    Attributes:
        source: Path or URL.
        name: Unique name of its output, without a suffix.
        index: Position in the manifest.
    """
    source: str
    name: str
    index: int = 0


def plan_videos(inputs: Iterable[str | Path]) -> dict[str, str]:
    """Find all videos, and choose a unique name for each one.

    The name of a video is its path below the folder of the input, without the
    suffix, and with ``_`` between folders. The time is proportional to the
    number of videos.

    Args:
        inputs: Videos, folders of videos, and lists of videos. A list is a
            text file with a path per line, or a CSV or parquet file with the
            column ``source`` and, optionally, ``name``. Paths in a list are
            relative to its folder. Names of videos in a list begin below the
            folder that all of its paths share. Videos and lists may be URLs.

    Returns:
        Names by the paths of the videos.

    Raises:
        ValueError: If an input does not exist, a list is invalid, or two
            videos have the same name.
    """
    videos: dict[str, str] = {}
    for path in map(os.fspath, inputs):
        names = None
        if os.path.splitext(path)[1].lower() in LIST_SUFFIXES:
            found, names = _read_list(path)
            first, last = min(found), max(found)
            shared = os.path.commonprefix([first, last])
            begin = (first if first == last else shared).rfind('/') + 1
        elif is_url(path):
            found, begin = [path], path.rfind('/') + 1
        elif os.path.isdir(path):
            found = list_videos(path)
            # list_videos leaves out the current folder.
            begin = len(str(Path(path, 'x'))) - 1
        elif os.path.exists(path):
            found = [str(Path(path))]
            begin = len(found[0]) - len(Path(path).name)
        else:
            raise ValueError(f'{path} does not exist')
        if names is None:
            names = [os.path.splitext(video[begin:])[0].replace('/', '_')
                     for video in found]
        videos.update(zip(found, names))
    count = Counter(videos.values())
    if len(count) < len(videos):
        name = min(name for name, times in count.items() if times > 1)
        same = [video for video, other in videos.items() if other == name]
        raise ValueError(f'{" and ".join(same)} would both have the name '
                         f'{name}')
    return videos


def _read_list(path: str) -> tuple[list[str], list[str] | None]:
    """Return the videos of a list and their names, if the list has them."""
    if not is_url(path) and not os.path.isfile(path):
        raise ValueError(f'{path} does not exist')
    names = None
    with local_file(path, latest=True) as file:
        if file.suffix.lower() == '.txt':
            sources = [line for line in read_lines(file) if line.strip()]
        else:
            table = _read_columns(file)
            if 'source' not in table:
                raise ValueError(f'{path} must have a column source, got '
                                 f'{", ".join(table)}')
            sources, names = table['source'], table.get('name')
    if not sources:
        raise ValueError(f'{path} lists no videos')
    if not all(isinstance(text, str) and text for text in sources):
        raise ValueError(f'{path} must have a path in each row of source')
    for name in names or ():
        if not isinstance(name, str) or name in ('', '.', '..') or (
                '/' in name or os.sep in name):
            raise ValueError(f'{path}: name must be a file name, got {name!r}')
    folder = path[:path.rfind('/') + 1]
    return [text if is_url(text) or os.path.isabs(text) else folder + text
            for text in sources], names


def _read_columns(path: Path) -> dict[str, Sequence[str]]:
    if path.suffix.lower() == '.parquet':
        file = arrow().parquet.ParquetFile(path)
        wanted = {'source', 'name'} & {*file.schema_arrow.names}
        if 'source' not in wanted:
            return dict.fromkeys(file.schema_arrow.names, ())
        return file.read(sorted(wanted)).to_pydict()
    with path.open(newline='', encoding='utf-8-sig') as file:
        header, *rows = [*filter(None, csv.reader(file))] or [[]]
    if any(len(row) != len(header) for row in rows):
        raise ValueError(f'{path} must have {len(header)} columns in each row')
    return dict(zip(header, zip(*rows) if rows else [()] * len(header)))


class Manifest:
    """Manifest of a run, a parquet file that never changes.

    Args:
        path: The file.
    """

    def __init__(self, path: Path) -> None:
        parquet = arrow().parquet
        self.table = parquet.read_table(path, memory_map=True)
        self.settings = json.loads(self.table.schema.metadata[KEY])
        self.shard_size = self.settings['shard_size']

    def __len__(self) -> int:
        return len(self.table)

    @property
    def num_shards(self) -> int:
        return math.ceil(len(self) / self.shard_size)

    def size(self, shard: int) -> int:
        """Return the number of items of a shard."""
        return min(self.shard_size, len(self) - shard * self.shard_size)

    def items(self, shard: int) -> list[Item]:
        """Return the items of a shard."""
        rows = self.table.slice(shard * self.shard_size, self.shard_size)
        return [Item(row['source'], row['name'], row['index'])
                for row in rows.to_pylist()]


def open_manifest(
        folder: Path, inputs: Sequence[str | Path], shard_size: int,
        plan: Callable[[Sequence[str]], dict[str, str]] = plan_videos
        ) -> Manifest:
    """Return the manifest of a run, which the first process writes.

    Args:
        folder: Folder of the run.
        inputs: See :func:`plan_videos`. Relative paths are made absolute.
        shard_size: Number of items per shard.
        plan: Function that returns the names of the videos of the inputs.
            Defaults to :func:`plan_videos`.

    Raises:
        ValueError: If the folder has the manifest of other inputs.
    """
    path = folder / FILE
    settings = dict(
        inputs=[one if is_url(one) else os.path.abspath(one)
                for one in map(os.fspath, inputs)], shard_size=shard_size)
    if not path.is_file():
        videos = plan(settings['inputs'])
        write_new(path, lambda part: write_manifest(part, videos, settings))
    manifest = Manifest(path)
    if manifest.settings != settings:
        different = ' and '.join(
            f'{key} was {value} and now is {settings[key]}'
            for key, value in manifest.settings.items()
            if value != settings[key])
        raise ValueError(f'{path}: {different}. Repeat the old options, or '
                         'choose another folder')
    return manifest


def write_manifest(path: Path, videos: dict[str, str],
                   settings: dict[str, Any]) -> None:
    """Write the columns index, source, name and shard."""
    pa = arrow()
    index = np.arange(len(videos))
    table = pa.table(dict(
        index=index, source=pa.array(videos.keys(), pa.string()),
        name=pa.array(videos.values(), pa.string()),
        shard=(index // settings['shard_size']).astype(np.int32)))
    pa.parquet.write_table(
        table.replace_schema_metadata({KEY: json.dumps(settings)}), path,
        row_group_size=ROW_GROUP)
