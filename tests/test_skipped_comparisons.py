# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""run_tests.sh --all fails when a comparison is skipped."""
from pathlib import Path
from types import SimpleNamespace

import pytest


@pytest.fixture
def finish(request, monkeypatch):
    """End a run of tests in which some were skipped; return its status."""
    conftest = request.config.pluginmanager.get_plugin(
        str(Path(__file__).with_name('conftest.py')))

    def run(reason, compares=True):
        monkeypatch.delenv('PYTEST_XDIST_WORKER', raising=False)
        monkeypatch.setenv('MMVIDATTN_COMPARE', '1' * compares)
        skipped = SimpleNamespace(longrepr=('a.py', 1, f'Skipped: {reason}'))
        reporter = SimpleNamespace(stats=dict(skipped=[skipped]))
        session = SimpleNamespace(exitstatus=0, config=SimpleNamespace(
            pluginmanager=SimpleNamespace(get_plugin=lambda name: reporter)))
        conftest.pytest_sessionfinish(session)
        return session.exitstatus

    return run


@pytest.mark.parametrize('name', [
    'torchvision', 'timm', 'transformers', 'open_clip',
    'huggingface_hub'])
def test_skipped_comparison_fails(finish, name, capsys):
    reason = f"could not import '{name}': No module named '{name}'"
    assert finish(reason) == 1
    assert name in capsys.readouterr().out


def test_other_skips_pass(finish):
    assert finish('needs CUDA') == 0
    assert finish("could not import 'timm'", compares=False) == 0
