# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
import pytest

from tools.analysis import ablation_table as tool


@pytest.fixture(scope='module')
def pages():
    return [tool.read_page(path) for path in tool.PAGES]


@pytest.mark.parametrize('page, name', [
    pytest.param(0, 'linear_ff_table01_linformer', marks=pytest.mark.slow),
    (0, 'linear_ff_table07_s'), (1, ('Table 2', 4)), (1, ('Figure 6', 7))])
def test_figures_on_the_pages_are_current(pages, page, name):
    page = pages[page]
    row = next(row for row in page.rows if row.config.stem == name) if (
        isinstance(name, str)) else [
            row for row in page.rows if row.table == name[0]][name[1]]
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
def test_whole_pages_are_current(run_main, capsys):
    run_main('analysis/ablation_table.py', '--check')
    assert '[1/' in capsys.readouterr().err
