# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
# First of all, so that what the tests import next is patched.
import mmvidattn  # noqa: F401, I001  isort: skip

import faulthandler
import os
import signal
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from mmengine.logging import MMLogger

ROOT = Path(__file__).resolve().parent.parent

# Programs that tests start import this checkout, installed or not.
os.environ['PYTHONPATH'] = os.pathsep.join(
    filter(None, (str(ROOT), os.environ.get('PYTHONPATH'))))

if 'PYTEST_XDIST_WORKER' in os.environ:
    torch.set_num_threads(1)

# Seconds that a test may take, with its fixtures. A test may set a limit of
# its own to a program that it runs.
LIMIT = 600
SLOW_LIMIT = 3600
GRACE = 30


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item):
    """End a test that hangs, such as on a program that never returns.

    A deadlock in C code runs no signal handler: it ends the process, and
    xdist names the test.
    """
    if not hasattr(signal, 'SIGALRM') or (
            threading.current_thread() is not threading.main_thread()):
        return (yield)
    limit = SLOW_LIMIT if item.get_closest_marker('slow') else LIMIT

    def stop(*args):
        pytest.fail(f'took longer than {limit} s')

    before = signal.signal(signal.SIGALRM, stop)
    signal.alarm(limit)
    faulthandler.dump_traceback_later(limit + GRACE, exit=True)
    try:
        return (yield)
    finally:
        faulthandler.cancel_dump_traceback_later()
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The programs, which take longest, first: the workers end together."""
    long = ROOT / 'tests/tools', ROOT / 'tests/engine', ROOT / 'tests/configs'
    items.sort(key=lambda item: not any(
        item.path.is_relative_to(folder) for folder in long))


def pytest_terminal_summary(
        terminalreporter: pytest.TerminalReporter) -> None:
    """Say what was not tested here, and what it would take."""
    reasons = Counter(
        report.longrepr[2].removeprefix('Skipped: ')
        for report in terminalreporter.stats.get('skipped', ()))
    if reasons:
        terminalreporter.section('not tested here')
    for reason, count in reasons.most_common():
        terminalreporter.line(f'{count:5} skipped: {reason}')


@pytest.fixture(scope='module', autouse=True)
def fresh_logger() -> Iterator[None]:
    """What a program does to the logger is not left to the next file."""
    yield
    MMLogger._instance_dict.clear()


@pytest.fixture(scope='session')
def shared_dir() -> Path:
    """Reference material that lies beside some checkouts."""
    path = ROOT.parent / 'shared'
    if not path.is_dir():
        pytest.skip('there is no ../shared beside this checkout')
    return path


@pytest.fixture(scope='session')
def golden(shared_dir) -> Callable[[str], Any]:
    """Loads a file of reference outputs by its name below goldens/."""

    def load(name: str) -> Any:
        return torch.load(shared_dir / 'goldens' / name, weights_only=True)

    return load


@pytest.fixture(scope='session')
def motion_dir(tmp_path_factory) -> Path:
    """A small motion set: 16 training and 8 validation videos."""
    path = tmp_path_factory.mktemp('motion')
    subprocess.run(
        [
            sys.executable, ROOT / 'tools/data/motion/make_motion.py', path,
            '--train', '16', '--val', '8', '--seed', '0'
        ],
        check=True)
    return path
