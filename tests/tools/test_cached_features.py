# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
import pytest

from tools.studies import cached_features as tool

pytestmark = pytest.mark.slow


@pytest.mark.parametrize('difference, words', [
    (0., 'are bit-equal'), (2.5e-7, 'differ by at most 2.5e-07')])
def test_report_has_epochs_and_ratios(difference, words):
    text = tool.format_report([10., 9.], [12., 0.25], difference)
    assert '| 2 | 9.000 | 0.250 |' in text
    assert 'is 48 times as fast as the first, and 36 times' in text
    assert words in text


def test_cached_training_gives_the_same_weights(run_tool, tmp_path):
    done = run_tool('studies/cached_features.py', '--out', 'out', '--clips', 8,
                    '--epochs', 2, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stdout == (tmp_path / 'out/report.md').read_text()
    assert 'are bit-equal' in done.stdout
