# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Run a command on a long list of videos, in shards."""
import os
import sys
from collections.abc import Mapping, Sequence
from itertools import islice
from pathlib import Path

from ..apis.runner import program_name
from ..utils.interrupts import one_line_stop
from ..utils.printable import echo, printable
from ..utils.worker_pool import WorkerPool
from .job import Job
from .leases import FOLDER, Leases
from .manifest import Manifest, arrow
from .progress import Meter
from .ray_engine import run_ray
from .shards import CATALOG, run_shards, write_catalog

# Faults to repeat in the last line.
MAX_FAULTS = 5
# Variables with the number of a process and the number of processes, from the
# outermost level; the first pair of a level that is set counts.
LEVELS = ((('SLURM_ARRAY_TASK_ID', 'SLURM_ARRAY_TASK_COUNT'), ),
          (('RANK', 'WORLD_SIZE'), ('SLURM_PROCID', 'SLURM_NTASKS')))


def place_of_process(environ: Mapping[str, str]) -> tuple[int, int]:
    """Return the number of this process, and the number of processes.

    Tasks of a Slurm array are counted first, and the processes that torchrun
    or srun started within a task second.
    """
    place, count = 0, 1
    for level in LEVELS:
        for number, size in level:
            if number in environ and size in environ:
                first = int(environ.get(f'{number[:-2]}MIN', 0))
                step = int(environ.get(f'{number[:-2]}STEP', 1))
                number = (int(environ[number]) - first) // step
                place = place * int(environ[size]) + number
                count *= int(environ[size])
                break
    return place, count


def order_shards(num_shards: int, shard: tuple[int, int] | None,
                 environ: Mapping[str, str] = os.environ) -> list[int]:
    """Return the shards of this process, in the order to try.

    Args:
        num_shards: Number of shards.
        shard: Only every n-th shard, from the i-th, as ``(i, n)``. By default,
            all shards, beginning at a different one in each process of a
            Slurm array, torchrun or srun.
        environ: Environment variables.
    """
    if shard is not None:
        return [*range(shard[0], num_shards, shard[1])]
    place, count = place_of_process(environ)
    first = num_shards * place // count
    return [*range(first, num_shards), *range(first)]


def run_local(folder: Path, manifest: Manifest, shards: Sequence[int],
              job: Job, lease: float) -> None:
    """Process shards in processes of this machine.

    Several programs, also on several machines, may do so at the same time.

    Args:
        folder: Folder of the run.
        manifest: Its manifest.
        shards: Shards to process.
        job: Work for each item.
        lease: Seconds after which the shards of a program that has stopped
            responding are processed by another program.
    """
    with Meter(job.task, sum(map(manifest.size, shards))) as meter, \
            WorkerPool(job.make, job.processes, **job.pool) as pool:
        run_shards(folder, manifest, shards, job.columns, pool,
                   Leases(folder / FOLDER, lease), meter)
    echo(f'{folder}: {meter.own} videos processed here, {meter.rate:.3g}/s',
         file=sys.stderr)


def run_corpus(folder: Path, manifest: Manifest, job: Job, engine: str,
               shard: tuple[int, int] | None, lease: float
               ) -> dict[str, str] | None:
    """Process a manifest, write the catalog, and print a summary.

    Args:
        folder: Folder of the run.
        manifest: Its manifest.
        job: Work for each item.
        engine: 'local' or 'ray'.
        shard: See :func:`order_shards`.
        lease: See :func:`run_local`.

    Returns:
        Reasons of the videos that failed, or None if shards are left.
    """
    shards = order_shards(manifest.num_shards, shard)
    with one_line_stop('; the same command continues'):
        run = run_ray if engine == 'ray' else run_local
        run(folder, manifest, shards, job, lease)
        if not write_catalog(folder, manifest):
            echo(f'{folder}: other shards are left, so there is no catalog '
                 'yet')
            return None
        for left in (folder / FOLDER).glob('[!.]*'):
            # A program was killed between its part and its lease.
            left.unlink(missing_ok=True)
    pa = arrow()
    catalog = pa.parquet.read_table(folder / CATALOG, columns=[
        'source', 'status', 'reason'])
    failed = catalog.filter(pa.compute.equal(catalog['status'], 'failed'))
    echo(f'{folder / CATALOG}: {len(catalog) - len(failed)} videos are ok, '
         f'{len(failed)} failed')
    return dict(zip(failed['source'].to_pylist(),
                    failed['reason'].to_pylist()))


def exit_with_faults(faults: Mapping[str, str] | None) -> None:
    """End the command with status 1 if a video failed."""
    if faults:
        first = [f'{source}: {reason}'
                 for source, reason in islice(faults.items(), MAX_FAULTS)]
        if len(faults) > MAX_FAULTS:
            first.append(f'and {len(faults) - MAX_FAULTS} others')
        raise SystemExit(printable(
            f'{program_name()}: error: {"; ".join(first)}'))
