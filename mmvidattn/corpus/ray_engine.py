# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Run shards on a Ray cluster.

Each actor has a process of :class:`WorkerPool` with the model, so that a video
that crashes the decoder does not end the actor. Ray processes the shards of a
lost machine on the remaining machines.
"""
import math
import os
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from ..utils.printable import echo
from ..utils.worker_pool import WorkerPool
from .job import Job
from .leases import FOLDER, Leases
from .manifest import FILE, Manifest
from .progress import Meter
from .shards import run_shards


def import_ray() -> Any:
    """Import Ray with Ray Data.

    Raises:
        ImportError: If it is not installed.
    """
    try:
        import ray
        import ray.data
    except ImportError:
        raise ImportError('--engine ray needs Ray: pip install '
                          '"mmvidattn[ray]"') from None
    return ray


class ShardWorker:
    """Ray actor that processes shards.

    Args:
        folder: Folder of the run, which all machines share.
        current: Current folder of the command, for relative paths of models.
        job: Work for each item.
        lease: Seconds that a lease lasts without a heartbeat.
    """

    def __init__(self, folder: Path, current: str, job: Job,
                 lease: float) -> None:
        os.chdir(current)
        self.folder = folder
        self.job = job
        self.manifest = Manifest(folder / FILE)
        self.pool = WorkerPool(job.make, 1, **job.pool)
        self.leases = Leases(folder / FOLDER, lease)

    def __call__(self, batch: dict[str, Any]) -> dict[str, Any]:
        """Process the shards of a batch, and count their items."""
        meters = []
        for shard in batch['shard'].tolist():
            size = self.manifest.size(shard)
            with Meter(self.job.task, size, math.inf) as meter:
                run_shards(self.folder, self.manifest, [shard],
                           self.job.columns, self.pool, self.leases, meter)
            meters.append(meter)
        return dict(items=[meter.total for meter in meters],
                    failed=[meter.failed for meter in meters])


def run_ray(folder: Path, manifest: Manifest, shards: Sequence[int],
            job: Job, lease: float) -> None:
    """Process shards on the cluster of ``RAY_ADDRESS``, or on a local one.

    Args:
        folder: Folder of the run, which all machines share.
        manifest: Its manifest.
        shards: Shards to process.
        job: Work for each item. An actor has a CPU, and a GPU if the device
            of the job is 'cuda'.
        lease: Seconds that a lease lasts without a heartbeat.

    Raises:
        ImportError: If Ray is not installed.
    """
    ray = import_ray()
    if not ray.is_initialized():
        ray.init(log_to_driver=False)
    ray.data.DataContext.get_current().enable_progress_bars = False
    # Forks of an actor, which has threads, may deadlock.
    job = replace(job, pool={**job.pool, 'start_method': 'spawn'})
    # A block per shard, so that Ray repeats only the lost shards.
    rows = ray.data.from_items(
        [dict(shard=shard) for shard in shards],
        override_num_blocks=len(shards)).map_batches(
            ShardWorker, batch_size=1, num_cpus=1,
            num_gpus=int(job.device.startswith('cuda')),
            # A fixed number would wait for actors of a lost machine.
            compute=ray.data.ActorPoolStrategy(
                min_size=1, max_size=job.processes),
            fn_constructor_args=(folder.absolute(), os.getcwd(), job, lease))
    with Meter(job.task, sum(map(manifest.size, shards))) as meter:
        for row in rows.iter_rows():
            meter.count(row['items'], row['failed'])
            meter.show()
    echo(f'{folder}: {meter.own} videos processed, {meter.rate:.3g}/s',
         file=sys.stderr)
