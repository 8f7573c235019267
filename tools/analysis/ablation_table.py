# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Write the pages of the ablations of linear_ff and ViViT.

    python tools/analysis/ablation_table.py           # write README.md
    python tools/analysis/ablation_table.py --check   # fail if outdated

A page lists the rows of ``configs/<family>/ablations`` with the paper's
results and the cost of each model, as ``complexity.py`` counts it. The
folder's ``page.yml`` has the text, the order of the rows, and rows that are
options of a config. Models are built on the meta device; nothing is computed.
"""
import argparse
import sys
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import yaml

from mmvidattn.apis import find_config, load_config
from mmvidattn.apis.complexity import Complexity
from mmvidattn.apis.config import list_rows
from mmvidattn.apis.view_shape import view_of

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
from tools.analysis.released_complexity import count_both

ROOT = Path(__file__).resolve().parents[2]
PAGES = [ROOT / f'configs/{family}/ablations/page.yml'
         for family in ('linear_ff', 'vivit')]
# Cost of our model, and of the released one.
Counts = tuple[Complexity, Complexity | None]


class Row(NamedTuple):
    """Row of an ablation table: a model and its results in the paper.

    Attributes:
        file: Name of the file in the ablations folder that defines the
            config as a row; '' if the config has a separate file.
        options: Changes to the config, in the form of ``--cfg-options``.
    """
    config: Path
    table: str
    name: str
    paper: str
    note: str = ''
    file: str = ''
    options: tuple[str, ...] = ()


class Page(NamedTuple):
    """Page with the ablation tables of a model family.

    Attributes:
        titles: Title of each table, in the order of the page.
        released: True if the tables have columns for the cost of the released
            code.
    """
    path: Path
    introduction: str
    titles: dict[str, str]
    rows: list[Row]
    differences: str
    released: bool


def read_page(path: Path) -> Page:
    """Read a ``page.yml``, which lists the tables of a page.

    The key ``rows`` of a table lists its rows in order. An entry is the name
    of a row that a file of the folder defines, or a mapping with the keys of
    :class:`Row` for any config. Without ``rows``, a table consists of the
    folder's rows with its number.

    Raises:
        ValueError: If a row of the folder is not listed exactly once, or is
            listed under another table.
    """
    content = yaml.safe_load(path.read_text('utf-8'))
    tables = content['tables']
    titles = {number: body['title'] for number, body in tables.items()}
    known = {row.name: Row(row.file.with_name(f'{row.name}.py'), row.table,
                           row.row, row.paper, row.note, row.file.name)
             for row in list_rows() if row.file.parent == path.parent}
    rows, listed = [], Counter()
    for number, body in tables.items():
        for row in body.get('rows', [name for name, row in known.items()
                                     if row.table == number]):
            if isinstance(row, str):
                listed[row] += 1
                row = known[row]
            else:
                config = find_config(row['config'])
                row = Row(**{
                    **row, 'config': config,
                    'table': number,
                    'file': getattr(known.get(config.stem), 'file', ''),
                    'options': tuple(row.get('options', ()))
                })
            if row.table != number:
                raise ValueError(f'{path}: {row.config.stem} belongs to '
                                 f'{row.table}, not to {number}')
            rows.append(row)
    wrong = {name for name in known if listed[name] != 1}
    if wrong:
        raise ValueError(f'{path} must list each row of its folder once; '
                         f'check {", ".join(sorted(wrong))}')
    return Page(path.with_name('README.md'), content['introduction'], titles,
                rows, content['differences'], content.get('released', False))


def options_of(row: Row) -> dict[str, Any]:
    """Return the options of a row by dotted keys."""
    pairs = (option.split('=', 1) for option in row.options)
    return {key: yaml.safe_load(value) for key, value in pairs}


def count(rows: Iterable[Row]) -> dict[Row, Counts]:
    """Count the cost of each row's model with ``count_both``."""
    known, counts = {}, {}
    rows = list(rows)
    for i, row in enumerate(rows, 1):
        cfg = load_config(row.config, options_of(row))
        shape, _ = view_of(cfg.test_pipeline)
        # Several tables may have the same model.
        key = (str(cfg.model.to_dict()), shape)
        if key not in known:
            known[key] = count_both(cfg, shape)
        counts[row] = known[key]
        print(f'[{i}/{len(rows)}] {row.config.stem}', file=sys.stderr)
    return counts


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    """Format a Markdown table, one line per row."""
    return [f'| {" | ".join(line)} |'
            for line in (head, ['---'] * len(head), *rows)]


def table_of(rows: Iterable[Row], counts: dict[Row, Counts],
             with_released: bool = True) -> list[str]:
    """Format a table and the notes on its rows, one line each."""
    columns = ['M', 'GMACs']
    if with_released:
        columns = ['M (released)', 'GMACs (released)']
    body, notes = [], []
    for row in rows:
        ours, released = counts[row]
        config = f'`{row.config.stem}`'
        link = f'[{config}]({row.file or f"../../{row.config.name}"})'
        costs = [f'{ours.params / 1e6:.2f}', f'{ours.macs / 1e9:.2f}']
        if with_released:
            costs = [
                f'{cost} ({other})' for cost, other in zip(
                    costs, (f'{released.params / 1e6:.2f}',
                            f'{released.macs / 1e9:.2f}')
                    if released else '--')]
        cells = [row.name, ' '.join([link, *(f'`{o}`' for o in row.options)]),
                 row.paper, *costs]
        body.append(cells)
        if row.note:
            notes.append(f'* {row.name if row.options else config}: '
                         f'{row.note}')
    lines = table(('row', 'config', 'paper', *columns), body)
    return lines + ([''] + notes if notes else [])


def text_of(page: Page, counts: dict[Row, Counts]) -> str:
    """Return the text of the page, with the tables in the order of titles."""
    parts = [page.introduction]
    for number, title in page.titles.items():
        rows = [row for row in page.rows if row.table == number]
        if rows:
            lines = [f'## {number}: {title}', '',
                     *table_of(rows, counts, page.released)]
            parts.append('\n'.join(lines) + '\n')
    return '\n'.join([*parts, page.differences])


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--check', action='store_true',
                        help='write nothing; exit with 1 if a page is stale')
    args = parser.parse_args()
    for page in map(read_page, PAGES):
        text = text_of(page, count(page.rows))
        if not args.check:
            page.path.write_text(text)
        elif not page.path.is_file() or page.path.read_text() != text:
            raise SystemExit(f'{page.path} is stale; run python '
                             'tools/analysis/ablation_table.py')


if __name__ == '__main__':
    main()
