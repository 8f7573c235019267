# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Rows of the papers' ablation tables.

A file ``configs/<family>/ablations/<table>.py`` defines the named rows of a
table. A row inherits from a config, another row, or several files of
``_base_``, and sets variables like a config file. A row can also use the
keywords of :func:`~mmvidattn.utils.config.derive`. A row has a virtual path,
``<row>.py`` beside the table; no such file exists.
"""
import copy
import runpy
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from mmengine.config import Config, ConfigDict

from ..utils.config import PIPELINES, VARIABLES, derive

FOLDER = 'ablations'


class Row(NamedTuple):
    """Row of an ablation table.

    Attributes:
        path: Virtual path of the row; no such file exists.
        table: File that defines the row.
        number: Number of the table in the paper, e.g. 'Table 3'.
        title: Title of the row in the table.
        paper: Results that the paper reports, or ''.
        note: Remark on these results.
        base: Name of the inherited config or row, or inherited files of
            ``_base_``.
        variables: Variables that the row sets.
    """
    path: Path
    table: Path
    number: str
    title: str
    paper: str
    note: str
    base: str | list[str]
    variables: dict[str, Any]


def read_table(table: Path) -> list[Row]:
    """Read the rows of a table."""
    content = runpy.run_path(str(table))
    rows = []
    for name, row in content['rows'].items():
        # Copy, because rows may share objects, which merging would change.
        row = copy.deepcopy(row)
        rows.append(Row(
            table.with_name(f'{name}.py'), table, content['table'],
            row.pop('row'), row.pop('paper', ''), row.pop('note', ''),
            row.pop('base', None) or content['base'], row))
    return rows


def list_rows(configs: Path) -> Iterator[Row]:
    """List the rows of all tables below a folder of configs."""
    for table in sorted(configs.glob(f'*/{FOLDER}/*.py')):
        yield from read_table(table)


def find_row(name: str, folder: Path) -> Row | None:
    """Find a row by its name, ``<table>_...``, or return None.

    Args:
        name: Name of the row.
        folder: Folder of configs, or of one family's ablations.
    """
    pattern = '*.py' if folder.name == FOLDER else f'*/{FOLDER}/*.py'
    for table in sorted(folder.glob(pattern)):
        if name.startswith(f'{table.stem}_'):
            for row in read_table(table):
                if row.path.stem == name:
                    return row
    return None


def load_row(row: Row) -> Config:
    """Build the config of a row."""
    configs = row.table.parents[2]
    if isinstance(row.base, list):
        content = {}
        for file in row.base:
            content |= Config.fromfile(configs / '_base_' / file).to_dict()
    else:
        inherited = find_row(row.base, configs)
        content = (
            load_row(inherited) if inherited else
            Config.fromfile(configs / f'{row.base}.py')).to_dict()
    content = ConfigDict(content)
    variables = dict(row.variables)
    derive(content, **{
        name: variables.pop(name) for name in (*VARIABLES, *PIPELINES)
        if name in variables})
    content.merge(ConfigDict(variables))
    return Config(content, row.table.read_text('utf-8'), row.path)
