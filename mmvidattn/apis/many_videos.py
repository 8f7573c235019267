# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Long lists of videos: a file of results for each video, in one folder."""
import json
import os
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import track

from ..datasets.annotations.video_segment import read_columns
from ..datasets.video_facts import list_videos
from ..utils.exits import one_line_stop
from ..utils.files import write_atomically
from ..utils.printable import brief, count, echo
from ..utils.remote_files import is_url, without_secrets
from ..utils.text_files import read_lines

LIST_SUFFIXES = '.csv', '.txt'
# Faults to repeat in the last line.
MAX_FAULTS = 5
# Repeats of a video that crashes its process, or whose machine is lost.
RETRIES = 1


def plan_videos(inputs: Iterable[str | Path]) -> dict[str, str]:
    """Find all videos, and choose a unique name for each one.

    The name of a video is its path below the folder of the input, without the
    suffix, and with ``_`` between folders.

    Args:
        inputs: Videos, folders of videos, and lists of videos. A list is a
            text file with a path per line, or a CSV file with the column
            ``source`` and, optionally, ``name``. Paths in a list are relative
            to its folder. Names of videos in a list begin below the folder
            that all of its paths share. Videos and lists may be URLs.

    Returns:
        Names by the paths of the videos.

    Raises:
        ValueError: If an input does not exist, a list is invalid, or two
            videos have the same name.
    """
    videos: dict[str, str] = {}
    for path in map(os.fspath, inputs):
        names = None
        if path.lower().endswith(LIST_SUFFIXES):
            found, names = _read_list(path)
            shared = os.path.commonprefix([*map(without_secrets, found)])
            begin = shared.rfind('/') + 1
        elif is_url(path):
            found, begin = [path], without_secrets(path).rfind('/') + 1
        elif os.path.isdir(path):
            found = list_videos(path)
            # list_videos leaves out the current folder.
            begin = len(str(Path(path, 'x'))) - 1
        elif os.path.exists(path):
            found = [str(Path(path))]
            begin = len(found[0]) - len(Path(path).name)
        else:
            raise ValueError(f'{without_secrets(path)} does not exist')
        if names is None:
            names = [os.path.splitext(without_secrets(video)[begin:])[0
                     ].replace('/', '_') for video in found]
        videos.update(zip(found, names))
    count = Counter(videos.values())
    if len(count) < len(videos):
        name = min(name for name, times in count.items() if times > 1)
        same = [without_secrets(video)
                for video, other in videos.items() if other == name]
        raise ValueError(f'{" and ".join(same)} would both have the name '
                         f'{name}')
    return videos


def _read_list(path: str) -> tuple[list[str], list[str] | None]:
    """Return the videos of a list and their names, if the list has them."""
    names = None
    if path.lower().endswith('.txt'):
        sources = [line for line in read_lines(path) if line.strip()]
    else:
        rows = [row for row, _ in read_columns(path, ('source', ))]
        sources = [row['source'] for row in rows]
        names = [row['name'] for row in rows if 'name' in row] or None
    if not sources or not all(sources):
        raise ValueError(f'{path} must have a path in each row, and at least '
                         'one row')
    for name in names or ():
        if name in ('', '.', '..') or '/' in name or os.sep in name:
            raise ValueError(f'{path}: name must be a file name, got {name!r}')
    folder = path[:path.rfind('/') + 1]
    return [text if is_url(text) or os.path.isabs(text) else folder + text
            for text in sources], names


def open_folder(folder: Path, name: str, settings: Mapping[str, Any],
                command: str) -> None:
    """Create a folder, or check that its results have these options.

    The file ``name`` in the folder has the options that determine the results,
    as JSON. Other options or other files in the folder are a ValueError.
    """
    file = folder / name
    if file.is_file():
        kept = json.loads(file.read_text())
        # JSON turns tuples into lists.
        settings = json.loads(json.dumps(settings))
        differing = [
            f'{key} was {kept.get(key)} and now is {settings.get(key)}'
            for key in sorted({*kept, *settings})
            if kept.get(key) != settings.get(key)]
        if differing:
            raise ValueError(f'the results in {folder} have different '
                             f'options: {"; ".join(differing)}. Repeat the '
                             'old options, or choose another folder')
        return
    # Other processes may be writing their options, to hidden files.
    if folder.exists() and any(path.name[0] != '.'
                               for path in folder.iterdir()):
        raise ValueError(f'{folder} is not empty and was not written by '
                         f'{command}: choose a new folder')
    write_atomically(file, json.dumps(settings, indent=2) + '\n', shared=True)


def process_videos(task: str, videos: Mapping[str, str], out: Path,
                   suffix: str, work: Callable[[str, str], Any], *,
                   engine: str | None, processes: int, device: str) -> None:
    """Write a file for each video that has none; failures are a ValueError.

    Args:
        task: Name for the progress, such as 'Extracting'.
        videos: Names by the paths of the videos.
        out: Folder of the files.
        suffix: Suffix of the files after the names.
        work: Function of a video and its name, which writes the file. Ray
            pickles it for each video, so it must keep the model in its
            process.
        engine: 'ray', or None for a loop in this process.
        processes: Maximum number of Ray's processes. Each has a CPU, and a GPU
            if the device is a CUDA device.
        device: Device of each process.
    """
    def exists(name: str) -> bool:
        return (out / f'{name}{suffix}').is_file()

    left = {source: name for source, name in videos.items()
            if not exists(name)}
    failed = {}
    with one_line_stop(lambda: (
            f' after {sum(map(exists, left.values()))} of {len(left)} videos; '
            'the same command continues')):
        done = ((source, _attempt(work, source, name))
                for source, name in left.items()) if engine is None else (
                    run_with_ray(left, work, processes, device))
        for source, fault in track(done, task, total=len(left),
                                   console=Console(stderr=True)):
            if fault:
                source = without_secrets(source)
                failed[source] = fault
                echo(f'{source}: {fault}', file=sys.stderr)
    echo(f'{out}: {count(len(left) - len(failed), "video")} written, '
         f'{len(videos) - len(left)} existed already, {len(failed)} failed')
    if failed:
        named = [': '.join(one) for one in failed.items()]
        if len(named) > MAX_FAULTS:
            named[MAX_FAULTS:] = ['and '
                                  + count(len(named) - MAX_FAULTS, 'other')]
        raise ValueError('; '.join(named))


def _attempt(work: Callable[[str, str], Any], source: str, name: str) -> str:
    """Process a video; return its fault, '' for none."""
    try:
        work(source, name)
        return ''
    except Exception as error:
        return brief(error)


def run_with_ray(videos: Mapping[str, str], work: Callable[[str, str], Any],
                 processes: int, device: str) -> Iterator[tuple[str, str]]:
    """Process videos on the cluster of ``RAY_ADDRESS``, or on a local one.

    If a video crashes its process, or a machine is lost, Ray repeats the
    video. See :func:`process_videos` for the arguments.

    Yields:
        The path of each video, and its fault, '' for none.
    """
    try:
        import ray
        import ray.data
    except ImportError:
        raise ImportError('--engine ray needs Ray: pip install '
                          '"mmvidattn[ray]"') from None
    if not videos:
        return
    folder = os.getcwd()

    def process(row: dict[str, str]) -> dict[str, str]:
        # Relative paths are those of the command.
        os.chdir(folder)
        return dict(source=row['source'], fault=_attempt(work, **row))

    if not ray.is_initialized():
        ray.init(log_to_driver=False)
    context = ray.data.DataContext.get_current()
    context.enable_progress_bars = False
    # A video that crashes its process loses only its own block.
    context.max_errored_blocks = -1
    rows = ray.data.from_items(
        [dict(source=source, name=name) for source, name in videos.items()],
        override_num_blocks=len(videos)).map(
            process, num_cpus=1, num_gpus=int(device.startswith('cuda')),
            # By default, Ray Data repeats a crash forever, and processes with
            # a GPU end after a call.
            max_retries=RETRIES, max_calls=0,
            compute=ray.data.TaskPoolStrategy(size=processes))
    left = dict.fromkeys(videos)
    for row in rows.iter_rows():
        del left[row['source']]
        yield row['source'], row['fault']
    for source in left:
        yield source, ('its process crashed, or its machine was lost, '
                       f'{RETRIES + 1} times')
