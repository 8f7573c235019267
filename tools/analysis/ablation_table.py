# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Write the pages of the ablations of linear_ff and ViViT.

    python tools/analysis/ablation_table.py           # writes README.md
    python tools/analysis/ablation_table.py --check   # is it current?

The rows of ``configs/<family>/ablations``: what the paper reports, and what
the model costs, as ``complexity.py`` counts it. ViViT's ``page.yml`` has the
text of its page, the order of its rows, and rows that are options of a config.
Nothing is computed: models live on the meta device.
"""
import argparse
import sys
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

import yaml

from mmvidattn.apis import find_config, load_config
from mmvidattn.apis.ablations import read_table
from mmvidattn.cli.complexity import count_config, view_of
from mmvidattn.utils.complexity import Complexity

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / 'configs/linear_ff/ablations'
PAGE = FOLDER / 'README.md'
OTHERS = [ROOT / 'configs/vivit/ablations/page.yml']

TITLES = {
    'Table 1': 'Something-Something v2, against other linear attentions',
    'Table 2': 'Kinetics-400 and -600, against other linear attentions',
    'Table 3': 'neighborhood association (spatial shift SS, temporal shift '
    'TS) and feature fixation (FF)',
    'Table 4': 'what the fixation ratio is made from',
    'Sec. 4.2': 'the gate as Eqs. 4 and 5 have it',
    'Table 5': 'kernel functions',
    'Sec. 5.3': 'ablations of the text',
    'Table 6': 'attention patterns',
    'Table 7': 'model variants',
    'Table 9': 'neighborhood association (NA) and feature fixation (FF) in '
    'other attentions',
    'Table 11': 'neighbors of the spatial shift',
    'Table 12': 'neighborhood association and feature fixation, '
    'Kinetics-400',
}

INTRODUCTION = '''\
# Ablations of the linear video transformer with feature fixation

Written by `python tools/analysis/ablation_table.py` from the tables in this
folder: change those, or that, but not this page.

A row for each row of the tables of
[the paper](https://arxiv.org/abs/2210.08164) whose model its authors trained,
and for the two linear attentions whose figures they copied. The column
"paper" is the paper's; we have trained none of these. Parameters
are in millions; GMACs (billions of multiply-accumulates, the paper's
"GFLOPs") and GFLOPs (two a multiply-accumulate, and the elementwise work) are
of one view. "Ours" is what is computed here; "released" is the same model as
the authors' code computes and counts it: K^T V first in time as in space, the
gate evaluated twice, an unused classifier among the parameters. Where that is
not known, there is a dash.

    bash tools/dist_train.sh linear_ff_table03_ts 8
'''

DIFFERENCES = '''\
## Where the paper's figures cannot be met

* **52.2 M and 257.8 G of the default model** (Tables 1 and 7) are those of an
  older gate, which sees Q and K only: counted as released,
  `linear_ff_table04_qk_cooperative_shared` has 257.84 G, and 52.20 M with the
  400 classes of Kinetics. The default of the released code sees Q, K and V:
  265.12 G and 52.01 M. Models H and HR are of that gate.
* **129.1 G of model S**: with the released gate on Q, K and V it is 132.56 G,
  with that on Q and K 128.92 G.
* **53.5 M of Linformer**: its projections of 289 tokens and of 16 frames to
  256, one for the keys and one for the values of each attention, make it
  53.59 M as released. Without the unused classifier, as we count, it is
  53.50 M; but then the others' 51.7 M would be 51.6 M.
* **102.0 M, 257.6 G and 257.7 G of LARA and Orthoformer** (the rows "RALA"
  and "Oformer") are copied from papers of larger models. The configs here put
  these attentions into the backbone of all the others, so neither cost nor
  accuracy is to be compared with that column.
* **The fixation ratio**: the text has sharing save some 0.1 M, and
  concatenation cost some 0.05 M more than addition. With a gate of each head,
  as released, it is 0.30 M (0.20 M on Q and K) and 0.20 M.
* **ELU + 1**: 60.42 is in Table 5 with NA and FF, in Table 9 without; with
  both, Table 9 has 64.76. **cosFormer** is at 62.0 in Table 1 and at 61.18 in
  Table 9, **our gain over the baseline** at 3.87 in the text and at 3.79 in
  Table 3.
* **Table 6**: the caption starts from the full model, but the released code's
  joint attention has neither gate nor shifts, so there is a config of each.
  The windowed model is not in the released code.
* **Table 9**: the cells of Performer with NA and FF are empty in the text we
  have. XViT has a temporal shift of its own, so + FF and + NA + FF are one
  model. In Table 1 its 92.0 M and 850.0 G are XViT's authors' figures, of
  three views.
* **The gate of Eqs. 4 and 5** maps all channels, of a single head "for
  simplicity". Over eight heads it has 18.6 M parameters more than the default
  model, which has 52.2 M in all.
* Table 8 and Figure 4 vary the test, not the model: for Figure 4 see "Number
  of views" one folder up.
'''

# Ours, and as released.
Counts = tuple[Complexity, Complexity | None]


class Row(NamedTuple):
    """A model, and what the paper reports of it.

    Attributes:
        file: File of the table that has the config; '' if it is a file.
        options: Options for ``--cfg-options``.
    """
    config: Path
    table: str
    name: str
    paper: str
    note: str = ''
    file: str = ''
    options: tuple[str, ...] = ()


class Page(NamedTuple):
    """A family's page.

    ``titles`` has the tables in their order, ``released`` is whether the
    columns of the released code's counts are there.
    """
    path: Path
    introduction: str
    titles: dict[str, str]
    rows: list[Row]
    differences: str
    released: bool


def read_rows(table: Path, titles: Iterable[str] = TITLES) -> list[Row]:
    """Read the rows of a table.

    Args:
        table: File of the table.
        titles: Names of the tables there are.

    Raises:
        ValueError: If `titles` does not have the table.
    """
    rows = read_table(table)
    number = rows[0].number
    if number not in titles:
        raise ValueError(f'{table}: table must be one of '
                         f'{", ".join(titles)}, got {number!r}')
    return [Row(row.path, number, row.title, row.paper, row.note, table.name)
            for row in rows]


def read_page(path: Path) -> Page:
    """A page from a ``page.yml``.

    Each of its tables lists its rows in order. A name is a row of the
    folder's tables; otherwise a row has the keys of :class:`Row`, and its
    config may be any.

    Raises:
        ValueError: If a row of the folder is not named once, or is of another
            table.
    """
    told = yaml.safe_load(path.read_text('utf-8'))
    titles = {table: body['title'] for table, body in told['tables'].items()}
    known = {row.config.stem: row
             for table in sorted(path.parent.glob('*.py'))
             for row in read_rows(table, titles)}
    rows, named = [], Counter()
    for table, body in told['tables'].items():
        for row in body['rows']:
            if isinstance(row, str):
                named[row] += 1
                row = known[row]
            else:
                config = find_config(row['config'])
                row = Row(**{
                    **row, 'config': config,
                    'table': table,
                    'file': getattr(known.get(config.stem), 'file', ''),
                    'options': tuple(row.get('options', ()))
                })
            if row.table != table:
                raise ValueError(f'{path}: {row.config.stem} is of '
                                 f'{row.table}, not of {table}')
            rows.append(row)
    wrong = {name for name in known if named[name] != 1}
    if wrong:
        raise ValueError(f'{path} must name each row of its folder once, '
                         f'not so {", ".join(sorted(wrong))}')
    return Page(path.with_name('README.md'), told['introduction'], titles,
                rows, told['differences'], released=False)


def pages() -> list[Page]:
    """All pages that are written."""
    rows = [row for table in sorted(FOLDER.glob('*.py'))
            for row in read_rows(table)]
    return [
        Page(PAGE, INTRODUCTION, TITLES, rows, DIFFERENCES, released=True),
        *map(read_page, OTHERS)
    ]


def options_of(row: Row) -> dict[str, Any]:
    """The options of a row, by dotted keys."""
    pairs = (option.split('=', 1) for option in row.options)
    return {key: yaml.safe_load(value) for key, value in pairs}


def count(rows: Iterable[Row]) -> dict[Row, Counts]:
    """Of each row what ``count_config`` returns."""
    known, counts = {}, {}
    rows = list(rows)
    for i, row in enumerate(rows, 1):
        cfg = load_config(row.config, options_of(row))
        shape, _ = view_of(cfg.test_pipeline)
        # Many rows are the same model in another table.
        key = (str(cfg.model.to_dict()), shape)
        if key not in known:
            known[key] = count_config(cfg, shape)
        counts[row] = known[key]
        print(f'[{i}/{len(rows)}] {row.config.stem}', file=sys.stderr)
    return counts


def table_of(rows: Iterable[Row], counts: dict[Row, Counts],
             with_released: bool = True) -> list[str]:
    """Lines of a table, and of the notes on its rows."""
    columns = ['M', 'GMACs', 'GFLOPs']
    if with_released:
        columns = ['M, ours', 'M, released', 'GMACs, ours', 'GMACs, released',
                   'GFLOPs, ours']
    lines = [
        f'| row | config | paper | {" | ".join(columns)} |',
        f'|{"---|" * (3 + len(columns))}'
    ]
    notes = []
    for row in rows:
        ours, released = counts[row]
        if ours.uncounted:
            raise ValueError(f'{row.config} has operators that nobody has '
                             f'told how to count: {dict(ours.uncounted)}')
        config = f'`{row.config.stem}`'
        link = f'[{config}]({row.file or f"../../{row.config.name}"})'
        cells = [
            row.name, ' '.join([link, *(f'`{o}`' for o in row.options)]),
            row.paper, f'{ours.params / 1e6:.2f}', f'{ours.macs / 1e9:.2f}',
            f'{ours.flops / 1e9:.2f}'
        ]
        if with_released:
            cells.insert(4, f'{released.params / 1e6:.2f}'
                         if released else '-')
            cells.insert(6, f'{released.macs / 1e9:.2f}' if released else '-')
        lines.append(f'| {" | ".join(cells)} |')
        if row.note:
            notes.append(f'* {row.name if row.options else config}: '
                         f'{row.note}')
    return lines + ([''] + notes if notes else [])


def text_of(page: Page, counts: dict[Row, Counts]) -> str:
    """The whole page, tables in the order of its titles."""
    parts = [page.introduction]
    for table, title in page.titles.items():
        of_table = [row for row in page.rows if row.table == table]
        if of_table:
            lines = [f'## {table}: {title}', '',
                     *table_of(of_table, counts, page.released)]
            parts.append('\n'.join(lines) + '\n')
    return '\n'.join([*parts, page.differences])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        '--check',
        action='store_true',
        help='write nothing; exit with 1 if a page is not current')
    args = parser.parse_args()
    stale = []
    for page in pages():
        text = text_of(page, count(page.rows))
        if not args.check:
            page.path.write_text(text)
            print(f'{page.path}: {len(page.rows)} rows', file=sys.stderr)
        elif not page.path.is_file() or page.path.read_text() != text:
            stale.append(str(page.path))
    if stale:
        raise SystemExit(f'{", ".join(stale)} not current; run python '
                         'tools/analysis/ablation_table.py')


if __name__ == '__main__':
    main()
