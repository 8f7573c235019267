# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Process videos on a Ray cluster, by Ray Data."""
import os
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from .printable import brief

# Repeats of a video that crashes its process, or whose machine is lost.
RETRIES = 1


def run_with_ray(videos: Mapping[str, str],
                 make: Callable[[], Callable[[str, str], Any]],
                 processes: int, device: str) -> Iterator[tuple[str, str]]:
    """Process videos on the cluster of ``RAY_ADDRESS``, or on a local one.

    If a video crashes its process, or a machine is lost, Ray repeats the
    video.

    Args:
        videos: Names by the paths of the videos.
        make: Function that returns the function of a video and its name. It is
            called for each video, and must keep the model in its process.
        processes: Maximum number of processes. Each has a CPU, and a GPU if
            the device is a CUDA device.
        device: Device of each process.

    Yields:
        The path of each video, and its fault, '' for none.

    Raises:
        ImportError: If Ray is not installed.
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
        fault = ''
        try:
            make()(row['source'], row['name'])
        except Exception as error:
            fault = brief(error)
        return dict(source=row['source'], fault=fault)

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
