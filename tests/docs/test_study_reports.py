# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
from pathlib import Path

import pytest

from tools.studies.study import load, names

RESULTS = Path(__file__).resolve().parents[2] / 'tools/studies/results'


@pytest.mark.parametrize('name', names())
def test_report_has_the_title_and_notes_of_its_study(name):
    study = load(name)
    page = (RESULTS / name / 'report.md').read_text()
    assert page.startswith(f'# {study.title}\n')
    for note in study.notes:
        assert f'\n{note}\n' in page
