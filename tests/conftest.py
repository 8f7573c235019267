# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
# Import this first, so that the tests' other imports have the workarounds.
import mmvidattn.registry  # noqa: I001  isort: skip

import copy
import faulthandler
import gc
import itertools
import os
import runpy
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any
from unittest.mock import MagicMock

import cv2
import pytest
import torch
from mmengine.config import Config
from mmengine.logging import MMLogger
from mmengine.registry import init_default_scope
from mmengine.utils.dl_utils import collect_env

ROOT = Path(__file__).resolve().parent.parent

# Programs started by tests import this checkout, even if it is not installed.
os.environ['PYTHONPATH'] = os.pathsep.join(
    filter(None, (str(ROOT), os.environ.get('PYTHONPATH'))))

# Tests of bfloat16 compute in it on every processor.
os.environ['MMVIDATTN_BFLOAT16'] = 'force'

# Forked processes that use OpenCV would wait for its threads.
cv2.setNumThreads(0)

if 'PYTEST_XDIST_WORKER' in os.environ:
    torch.set_num_threads(1)

# Time limit in seconds of a test with its fixtures.
LIMIT = 600
SLOW_LIMIT = 3600
# Settings of other packages for their caches, which all tests share.
CACHES = ('HYPOTHESIS_STORAGE_DIRECTORY', 'MPLCONFIGDIR', 'PIP_CACHE_DIR',
          'TRITON_CACHE_DIR', 'UV_CACHE_DIR')
# Folders without a setting: of onnxruntime, of the rustc that pip starts, of
# yapf and of fontconfig.
FOREIGN = {'.rustup', 'Microsoft', 'YAPF', 'fontconfig'}


def list_checkout() -> set[str]:
    """Return all files, except those of Python, git and developers' programs.
    """
    results = set()
    for folder, folders, files in os.walk(ROOT):
        folders[:] = [name for name in folders if name not in (
            '.git', '.hypothesis', '.pytest_cache', '.ruff_cache',
            '__pycache__') and not name.startswith('.venv')]
        results |= {os.path.join(folder, name) for name in (*folders, *files)}
    return results


CHECKOUT = list_checkout()


@contextmanager
def user_folders(folder: Path) -> Iterator[None]:
    """Enter an empty working directory, with an empty home and cache.

    The environment passes them on to programs that a test starts.
    """
    for name in 'work', 'home', 'cache':
        (folder / name).mkdir(parents=True)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder / 'work')
        patch.setenv('HOME', str(folder / 'home'))
        patch.setenv('USERPROFILE', str(folder / 'home'))
        patch.setenv('XDG_CACHE_HOME', str(folder / 'cache'))
        patch.delenv('XDG_CONFIG_HOME', raising=False)
        yield


import_all = cache(mmvidattn.registry.import_all)


def pytest_collectstart() -> None:
    """Import all registered classes, which tests list.

    xdist's main process collects nothing, so it saves the seconds.
    """
    import_all()


def pytest_collection_finish():
    """Exempt the imported modules from garbage collection.

    With all modules of a test session, one takes a quarter of a second.
    """
    gc.collect()
    gc.freeze()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item):
    """End the process of a test that exceeds its limit; xdist names the test.
    """
    faulthandler.dump_traceback_later(
        SLOW_LIMIT if item.get_closest_marker('slow') else LIMIT, exit=True)
    try:
        return (yield)
    finally:
        faulthandler.cancel_dump_traceback_later()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Start with the longest tests, so that all workers finish together."""
    long = [ROOT / 'tests' / name for name in (
        'test_compat.py', 'tools', 'engine', 'configs')]
    items.sort(key=lambda item: not any(
        item.path.is_relative_to(folder) for folder in long))


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Fail if the checkout has new files."""
    new = list_checkout() - CHECKOUT
    if new:
        print(f'\nERROR: new files in the checkout: {", ".join(sorted(new))}')
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


@pytest.fixture(scope='session', autouse=True)
def session_folders(tmp_path_factory) -> Iterator[Path]:
    """Give fixtures that several tests share empty folders, too.

    mmengine formats each config with yapf, collects garbage for each dataset,
    reads the bases of each config, and starts git and a compiler for the log
    of each run. This would take more than half of the time of short runs.
    """
    read, read_once = Config._file2dict, cache(Config._file2dict)

    def read_config(filename, *args, **kwargs):
        if ROOT / 'configs' in Path(filename).parents:
            return copy.deepcopy(read_once(str(filename), *args, **kwargs))
        return read(filename, *args, **kwargs)

    folder = tmp_path_factory.mktemp('session')
    with user_folders(folder), pytest.MonkeyPatch.context() as patch:
        for name in CACHES:
            patch.setenv(name, str(folder / name.lower()))
        patch.setattr('mmengine.config.config.FormatCode',
                      lambda text, **options: (text, True))
        patch.setattr('mmengine.dataset.base_dataset.gc',
                      SimpleNamespace(collect=int))
        patch.setattr(Config, '_file2dict', staticmethod(read_config))
        patch.setattr('mmvidattn.apis.config.runpy',
                      SimpleNamespace(run_path=cache(runpy.run_path)))
        patch.setattr('mmengine.utils.version_utils._minimal_ext_cmd',
                      lambda command: b'0' * 40)
        patch.setattr('mmengine.runner.runner.collect_env', cache(collect_env))
        yield folder


# Unlike `mktemp`, a counter does not read the names of all earlier folders.
NUMBERS = itertools.count()


@pytest.fixture(autouse=True)
def empty_folders(session_folders) -> Iterator[None]:
    """Give each test an empty working directory, home folder and cache.

    A test that leaves a file in the home folder or the cache fails.
    """
    folder = session_folders / f'{next(NUMBERS)}'
    with user_folders(folder):
        yield
    left = [path for name in ('home', 'cache') for path in (
        folder / name).iterdir() if path.name not in FOREIGN]
    assert not left, f'files that a test must not create: {left}'


@pytest.fixture(scope='module', autouse=True)
def fresh_globals() -> Iterator[None]:
    """Reset the scope, the loggers and what torch compiled for each file.

    A run of another file may have left mmengine's scope. torch limits how
    often one function is compiled in a process.
    """
    init_default_scope('mmaction')
    yield
    MMLogger._instance_dict.clear()
    if 'torch._dynamo' in sys.modules:
        torch._dynamo.reset()


@pytest.fixture(scope='session')
def shared_dir() -> Path:
    """Folder of reference material beside some checkouts."""
    path = ROOT.parent / 'shared'
    if not path.is_dir():
        pytest.skip('this checkout has no ../shared')
    return path


@pytest.fixture(scope='session')
def golden(shared_dir) -> Callable[[str], Any]:
    """Function that loads reference outputs by their name below goldens/."""

    def load(name: str) -> Any:
        return torch.load(shared_dir / 'goldens' / name, weights_only=True)

    return load


@pytest.fixture(scope='session')
def motion_dir(tmp_path_factory) -> Path:
    """Folder of a small motion set: 16 training and 8 validation videos."""
    from tools.data.motion.make_motion import make_motion
    path = tmp_path_factory.mktemp('motion') / 'set'
    make_motion(path, 16, 8, 0)
    return path


@pytest.fixture(scope='session')
def timm() -> ModuleType:
    """timm, whose models need torchvision only to be imported."""
    missing = [] if find_spec('torchvision') else [f'torchvision{name}' for (
        name) in ('', '.datasets', '.models', '.models.feature_extraction',
                  '.ops', '.ops.misc', '.transforms',
                  '.transforms.functional', '.utils')]
    sys.modules.update({
        name: MagicMock(__path__=[], __spec__=None) for name in missing})
    try:
        return pytest.importorskip('timm')
    finally:
        for name in missing:
            del sys.modules[name]
