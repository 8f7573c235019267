# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
import json

import pytest

from mmvidattn.apis import load_config
from mmvidattn.apis.view_shape import shape_of
from tools.analysis import ablation_table as tool
from tools.analysis.released_complexity import count_both


def test_counts_match_the_released_code():
    cfg = load_config('linear_ff_ssv2')
    ours, released = count_both(cfg, shape_of(cfg)[0])
    assert round(released.macs / 1e9, 2) == 265.12
    assert round(released.params / 1e6, 3) == 52.009
    assert ours.macs < released.macs


def test_counts_a_window_of_a_feature_stream():
    cfg = load_config('testra_anticipation_thumos14')
    ours, released = count_both(cfg, shape_of(cfg)[0])
    assert ours.params == 58_890_262 and released is None
    # TeSTra's released model projects its work memory twice.
    assert 0.97 < 2 * ours.macs / 1e9 / 9.280 < 1.0001


def test_writes_counts_as_json(run_main, capsys, tmp_path):
    out = tmp_path / 'counts.json'
    run_main('analysis/complexity.py', 'linear_ff_tiny_motion', '--shape', 8,
             64, 64, '--views', 3, '--cfg-options',
             'model.backbone.num_layers=1', '--json', out)
    printed = capsys.readouterr().out
    ours = json.loads(out.read_text())
    assert ours['macs_per_video'] == 3 * ours['macs_per_view'] > 0
    assert ours['params'] > 0
    # Counts of small models have three digits, not 0.01.
    assert f' {ours["macs_per_view"] / 1e9:.3g} GMACs per view 8x64x64' in (
        printed)
    assert 'of 3 views' in printed


@pytest.mark.parametrize('table, number', [('Table 2', 4), ('Figure 6', 7)])
def test_figures_on_a_page_are_current(table, number):
    page = tool.read_page(tool.PAGES[1])
    row = [row for row in page.rows if row.table == table][number]
    line = tool.table_of([row], tool.count([row]), page.released)[2]
    assert line in page.path.read_text().splitlines()


def test_text_on_the_pages_is_current():
    """Compare everything except the figures, which take a minute."""
    def no_figures(text):
        return [line.split(' | ')[:3] if line.startswith('| ') else line
                for line in text.splitlines()]

    pages = [tool.read_page(path) for path in tool.PAGES]
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
