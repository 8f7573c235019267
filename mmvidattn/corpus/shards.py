# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Shards of a run: process their items, and write a part for each shard.

The bytes of a part depend only on the items, so a shard may be processed
twice, by any process.
"""
import os
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ..utils.files import replacing
from ..utils.worker_pool import WorkerPool
from .leases import Leases
from .manifest import Item, Manifest, arrow
from .progress import Meter

PARTS = 'parts'
CATALOG = 'catalog.parquet'
# Columns of every part. The columns of the command follow.
COLUMNS = dict(index='int64', name='string', source='string', status='string',
               reason='string')
# The only column that the catalog lacks.
VALUES = 'values'
ROW_GROUP = 100_000
# Seconds between two searches for a free lease.
PATIENCE = 0.5


def part_name(shard: int) -> str:
    return f'{shard:06}.parquet'


def run_shards(folder: Path, manifest: Manifest, shards: Sequence[int],
               columns: dict[str, str], pool: WorkerPool, leases: Leases,
               meter: Meter) -> None:
    """Process shards until all their parts exist.

    Shards that a different process has leased are left to it, unless it dies.

    Args:
        folder: Folder of the run.
        manifest: Its manifest.
        shards: Numbers of the shards, in the order to try.
        columns: Names and Arrow types of the results of an item.
        pool: Processes, whose function takes an :class:`Item` and returns a
            dict of results.
        leases: Leases of the shards.
        meter: Progress to report.
    """
    parts = folder / PARTS
    parts.mkdir(exist_ok=True)
    # Rows of shards in work, by index.
    open_shards: dict[int, dict[int, dict[str, Any]]] = {}

    def items() -> Iterator[Item | None]:
        search = 0.
        left = [*shards]
        while True:
            if time.monotonic() < search:
                yield None
                continue
            written = {*os.listdir(parts)}
            meter.done = sum(map(len, open_shards.values())) + sum(
                manifest.size(shard) for shard in shards
                if part_name(shard) in written)
            left = [shard for shard in left if shard not in open_shards and (
                part_name(shard) not in written)]
            if not left:
                return
            leased = {*os.listdir(leases.folder)}
            # Try free shards first.
            for shard in sorted(left, key=lambda one: str(one) in leased):
                if leases.take(str(shard)):
                    break
            else:
                search = time.monotonic() + PATIENCE
                continue
            if (parts / part_name(shard)).exists():
                leases.release(str(shard))
            else:
                open_shards[shard] = {}
                yield from manifest.items(shard)

    try:
        for done in pool.run(items()):
            leases.beat()
            meter.show()
            if done is None:
                continue
            item, result, fault = done
            meter.add(item.source, fault)
            shard = item.index // manifest.shard_size
            rows = open_shards[shard]
            rows[item.index] = dict(
                result or {}, index=item.index, name=item.name,
                source=item.source, status='failed' if fault else 'ok',
                reason=fault)
            if len(rows) == manifest.size(shard):
                write_part(parts / part_name(shard),
                           [rows[index] for index in sorted(rows)], columns)
                del open_shards[shard]
                leases.release(str(shard))
    finally:
        leases.release_all()


def write_part(path: Path, rows: Sequence[dict[str, Any]],
               columns: dict[str, str]) -> None:
    """Write the rows of a shard; missing values are null."""
    pa = arrow()
    table = pa.table({
        name: pa.array([row.get(name) for row in rows], arrow_type(kind))
        for name, kind in {**COLUMNS, **columns}.items()})
    with replacing(path, shared=True) as part:
        pa.parquet.write_table(table, part, compression='zstd')


def arrow_type(kind: str) -> Any:
    """Return an Arrow type by its name, such as 'int64' or 'list<float'."""
    pa = arrow()
    if kind.startswith('list<'):
        return pa.list_(pa.type_for_alias(kind[5:-1]))
    return pa.type_for_alias(kind)


def write_catalog(folder: Path, manifest: Manifest) -> bool:
    """Write a row for each item, if all parts exist.

    Returns:
        True if the catalog exists.
    """
    catalog = folder / CATALOG
    if catalog.is_file():
        return True
    written = {*os.listdir(folder / PARTS)}
    names = [part_name(shard) for shard in range(manifest.num_shards)]
    if not written.issuperset(names):
        return False
    pa = arrow()
    schema = pa.parquet.read_schema(folder / PARTS / names[0])
    if VALUES in schema.names:
        schema = schema.remove(schema.get_field_index(VALUES))
    step = max(1, ROW_GROUP // manifest.shard_size)
    with replacing(catalog, shared=True) as part, \
            pa.parquet.ParquetWriter(part, schema) as writer:
        for first in range(0, len(names), step):
            writer.write_table(pa.concat_tables(
                pa.parquet.read_table(folder / PARTS / name,
                                      columns=schema.names)
                for name in names[first:first + step]))
    return True


def values_of(array: np.ndarray) -> dict[str, Any]:
    """Return the columns ``shape`` and ``values`` of a float array."""
    return dict(shape=[*array.shape], values=array.ravel())
