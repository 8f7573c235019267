# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
from pathlib import Path

import pytest

from tools.analysis import ablation_table as tool

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope='module')
def pages():
    return [tool.read_page(path) for path in tool.PAGES]


@pytest.fixture(scope='module')
def rows(pages):
    return pages[0].rows


@pytest.mark.parametrize('name', [
    pytest.param('linear_ff_table01_linformer', marks=pytest.mark.slow),
    'linear_ff_table07_s'])
def test_figures_on_the_page_are_current(pages, rows, name):
    row, = (row for row in rows if row.config.stem == name)
    lines = tool.table_of([row], tool.count([row]))
    page = pages[0].path.read_text().splitlines()
    assert name in lines[2] and set(lines) <= set(page)


@pytest.mark.parametrize('table, number', [('Table 2', 4), ('Figure 6', 7)])
def test_figures_of_vivit_on_the_page_are_current(pages, table, number):
    page = pages[1]
    row = [row for row in page.rows if row.table == table][number]
    line = tool.table_of([row], tool.count([row]), page.released)[2]
    assert line in page.path.read_text().splitlines()


def test_text_on_the_pages_is_current(pages):
    """Compare everything except the figures, which take a minute."""
    def no_figures(text):
        return [line.split(' | ')[:3] if line.startswith('| ') else line
                for line in text.splitlines()]

    assert [page.path.parents[1].name for page in pages] == [
        'linear_ff', 'vivit']
    for page in pages:
        words = tool.text_of(
            page, dict.fromkeys(page.rows, (tool.Complexity(0, 0), None)))
        assert no_figures(words) == no_figures(page.path.read_text())


@pytest.mark.slow
def test_whole_pages_are_current(run_tool, tmp_path):
    done = run_tool('analysis/ablation_table.py', '--check', cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert '[1/' in done.stderr


@pytest.mark.parametrize('edit', [lambda page: page + 'x', None],
                         ids=['another', 'absent'])
def test_check_fails_where_the_page_is_stale(pages, edit, tmp_path,
                                             monkeypatch):
    page = tmp_path / 'README.md'
    rows = [row for row in pages[0].rows if row.table == 'Table 7']
    monkeypatch.setattr(tool, 'PAGES', [None])
    monkeypatch.setattr(tool, 'read_page', lambda path: pages[0]._replace(
        path=page, rows=rows))
    monkeypatch.setattr(tool, 'count_both',
                        lambda *args: (tool.Complexity(1, 2), None))
    monkeypatch.setattr('sys.argv', ['ablation_table.py'])
    tool.main()
    monkeypatch.setattr('sys.argv', ['ablation_table.py', '--check'])
    tool.main()
    if edit is None:
        page.unlink()
    else:
        page.write_text(edit(page.read_text()))
    with pytest.raises(SystemExit, match='README.md is stale'):
        tool.main()
