# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Pages of results that tools write from files of this repository."""
from pathlib import Path

from tools import matrix

ROOT = Path(__file__).resolve().parents[2]


def test_reliability_page_is_current(run_main):
    run_main('soak/reliability.py', '--check')


def test_matrix_page_has_every_row():
    head = '\n'.join(matrix.table(matrix.COLUMNS, ())) + '\n'
    table = (ROOT / 'docs/matrix.md').read_text().partition(
        head)[2].partition('\n\n')[0]
    cells = [[x.strip() for x in line.split('|')[1:-1]]
             for line in table.splitlines()]
    assert [int(row[0]) for row in cells] == [
        *range(1, 1 + len(matrix.ROWS))]
    for row, asked in zip(cells, matrix.ROWS):
        assert len(row) == 11 and row[-1]
        assert row[1].startswith(asked.python)
        assert row[2].startswith(asked.torch)
        assert row[3].split()[0] == asked.mmcv
        assert row[4].startswith(asked.numpy)
