# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Rows of the papers' ablation tables.

The dict ``rows`` of ``configs/<family>/ablations/<family>.py`` has an entry
for each row: its base (a config or another row), and options in the form of
``--cfg-options``. A row has a virtual path, ``<row>.py`` beside that file; no
such file exists.
"""
import runpy
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from mmengine.config import Config

from .config_options import apply_options

FOLDER = 'ablations'


class Row(NamedTuple):
    """Row of an ablation table.

    Attributes:
        path: Virtual path of the row; no such file exists.
        file: File that defines the row.
        number: Number of the table in the paper, e.g. 'Table 3'.
        title: Title of the row in the table.
        paper: Results that the paper reports, or ''.
        note: Remark on these results.
        base: Name of the inherited config or row.
        options: Changes to the base, as for ``--cfg-options``.
    """
    path: Path
    file: Path
    number: str
    title: str
    paper: str
    note: str
    base: str
    options: dict[str, Any]


def read_rows(file: Path) -> list[Row]:
    """Read the rows of a file."""
    return [Row(file.with_name(f'{name}.py'), file, row['table'], row['row'],
                row.get('paper', ''), row.get('note', ''), row['base'],
                row.get('options', {}))
            for name, row in runpy.run_path(str(file))['rows'].items()]


def list_rows(configs: Path) -> Iterator[Row]:
    """List all rows below a folder of configs."""
    for file in sorted(configs.glob(f'*/{FOLDER}/*.py')):
        yield from read_rows(file)


def find_row(name: str, folder: Path) -> Row | None:
    """Find a row by its name, or return None.

    Args:
        name: Name of the row.
        folder: Folder of configs, or of one family's ablations.
    """
    pattern = '*.py' if folder.name == FOLDER else f'*/{FOLDER}/*.py'
    return next((row for file in sorted(folder.glob(pattern))
                 for row in read_rows(file) if row.path.stem == name), None)


def load_row(row: Row) -> Config:
    """Build the config of a row."""
    configs = row.file.parents[2]
    inherited = find_row(row.base, configs)
    cfg = (load_row(inherited) if inherited else
           Config.fromfile(configs / f'{row.base}.py'))
    apply_options(cfg, row.options)
    return Config(cfg.to_dict(), row.file.read_text('utf-8'), row.path)
