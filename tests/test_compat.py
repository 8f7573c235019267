# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import mmaction
import pytest
from compat_symptoms import SYMPTOMS
from killed_runs import write_config

import mmvidattn
from mmvidattn import compat

HERE = Path(__file__).parent
PACKAGE = Path(mmvidattn.__file__).parent


@pytest.fixture(scope='module')
def results(tmp_path_factory) -> dict[str, Any]:
    """Return the outcomes of all symptoms."""
    run = python(HERE / 'compat_symptoms.py', PACKAGE,
                 TMPDIR=str(tmp_path_factory.mktemp('symptoms')))
    return json.loads(run.stdout.splitlines()[-1])


def python(*args: Any, **env: str) -> subprocess.CompletedProcess:
    env = {**os.environ, 'CUDA_VISIBLE_DEVICES': '', 'OMP_NUM_THREADS': '1',
           'PYTHONPATH': str(HERE.parent), **env}
    run = subprocess.run([sys.executable, *map(str, args)], env=env,
                         capture_output=True, text=True, timeout=600)
    assert run.returncode == 0, run.stderr
    return run


@pytest.mark.parametrize('name', SYMPTOMS)
def test_workaround_removes_symptom(results, name):
    applied, without = results[name]
    assert applied is None
    assert without is not None, 'no symptom without the workaround'
    assert re.search(SYMPTOMS[name].shows, without), without


def test_every_workaround_has_a_symptom():
    assert {one.name for one in compat.WORKAROUNDS} == {
        symptom.workaround for symptom in SYMPTOMS.values()}


def test_second_application_has_no_effect():
    from mmaction.models.heads import BaseHead
    from mmengine.optim import AmpOptimWrapper
    once = BaseHead.__call__, AmpOptimWrapper.__init__
    compat.apply()
    assert (BaseHead.__call__, AmpOptimWrapper.__init__) == once


def test_rejects_unknown_workaround_to_skip(monkeypatch):
    monkeypatch.setenv(compat.SKIP, 'add_missing_drn,heal_all')
    with pytest.raises(ValueError, match='SKIP_PATCHES.*got heal_all$'):
        compat.apply()


def test_page_lists_all_workarounds():
    page = (HERE.parent / 'docs/workarounds.md').read_text('utf-8')
    rows = [line for line in page.splitlines() if line.startswith('| `')]
    assert rows == [
        '| ' + ' | '.join((f'`{one.name}`', *map(
            described(one.function.__doc__).__getitem__,
            ('Symptom', 'Upstream', 'Until')))) + ' |'
        for one in compat.WORKAROUNDS]


def described(doc: str) -> dict[str, str]:
    """Return the symptom, condition and report of a docstring."""
    parts = re.split(r'\n    (Symptom|Until|Upstream): ', doc)
    texts = [' '.join(text.split()) for text in parts[2::2]]
    return {'Upstream': 'not reported', **dict(zip(parts[1::2], texts))}


AUDIT = """
import importlib, json, pkgutil, sys, types, warnings

PACKAGES = 'mmaction', 'mmengine', 'mmcv'
# Packages without their submodules.
PLAIN = ('numpy', 'torch', 'torch.cuda', 'torch.hub', 'torch.serialization',
         'torch.nn.functional', 'torch.utils.data', 'pickle', 'yaml', 'json',
         'random', 'multiprocessing')


def contents(value):
    if isinstance(value, dict):
        return {key: id(item) for key, item in value.items()}


def audited():
    for name, module in [*sys.modules.items()]:
        if (name.partition('.')[0] in PACKAGES or name in PLAIN) and (
                isinstance(module, types.ModuleType)):
            yield name, module
            for value in [*vars(module).values()]:
                if isinstance(value, type) and value.__module__ == name:
                    yield f'{name}.{value.__qualname__}', value


def registries():
    from mmengine.registry import Registry
    for name, owner in audited():
        for key, value in [*vars(owner).items()]:
            if isinstance(value, Registry):
                yield f'{name}.{key}', value.module_dict


sys.path.insert(0, sys.argv[1])
from compat_symptoms import unapplied

warnings.simplefilter('ignore')
# mmaction cannot be imported without it.
unapplied(sys.argv[2]).imports.add_missing_drn()
for name in [name for name in sys.modules if name.startswith('mmvidattn')]:
    del sys.modules[name]
for package in PACKAGES:
    package = importlib.import_module(package)
    for info in pkgutil.walk_packages(package.__path__, package.__name__ + '.',
                                      onerror=lambda name: None):
        try:
            importlib.import_module(info.name)
        except Exception:
            pass
for name in PLAIN:
    importlib.import_module(name)
owners = [*audited()]
before = [dict(vars(owner)) for _, owner in owners]
inside = [{k: contents(v) for k, v in s.items()} for s in before]
known = {name: dict(entries) for name, entries in registries()}
code = {id(v): v.__code__ for s in before for v in s.values()
        if isinstance(v, types.FunctionType)}

import mmvidattn

changed = set()
for (name, owner), old, items in zip(owners, before, inside):
    for key, value in vars(owner).items():
        if key.startswith('_abc_') or key in (
                '__builtins__', '__warningregistry__', '_module_dict'):
            continue
        if key not in old:
            # An import sets a submodule in its package.
            if not isinstance(value, types.ModuleType):
                changed.add(f'{name}.{key}')
        elif items[key] is not None and isinstance(value, dict):
            now = contents(value)
            if any(now.get(k) != v for k, v in items[key].items()):
                changed.add(f'{name}.{key}[...]')
        elif old[key] is not value:
            changed.add(f'{name}.{key}')
        elif id(value) in code and code[id(value)] is not value.__code__:
            changed.add(f'{name}.{key}.__code__')
    changed |= {f'{name}.{key}' for key in old if key not in vars(owner)}
for name, entries in registries():
    changed |= {f'{name}[{key}]' for key, value in known[name].items()
                if entries.get(key) is not value}
print(json.dumps([sorted(changed), sorted(
    change for one in mmvidattn.compat.WORKAROUNDS for change in one.changes
    if change.startswith(PACKAGES))]))
"""


def test_import_changes_exactly_what_it_lists(tmp_path):
    """Compare the changes that an import makes with the list of changes.

    A change is a new attribute, a changed entry of a dictionary or of a
    registry. New entries of a dictionary do not count, because classes are
    registered.
    """
    (tmp_path / 'audit.py').write_text(AUDIT)
    done = python(tmp_path / 'audit.py', HERE, PACKAGE)
    changed, listed = json.loads(done.stdout.splitlines()[-1])
    assert changed == listed
    assert len(listed) > 20


SPAWN = """
import sys


class Seen:
    def __len__(self):
        return 4

    def __getitem__(self, index):
        return int('mmvidattn' in sys.modules)


if __name__ == '__main__':
    import mmvidattn
    from mmengine.runner import Runner
    for method in 'spawn', 'fork':
        loader = Runner.build_dataloader(
            dict(dataset=Seen(), batch_size=4, num_workers=1,
                 multiprocessing_context=method,
                 sampler=dict(type='DefaultSampler', shuffle=False)), seed=1)
        [seen] = loader
        assert all(seen), method
        print(method)
    from mmengine.registry import MODELS, DefaultScope
    from mmvidattn.utils import register_all_modules
    for init in False, True:
        register_all_modules(init_default_scope=init)
        scope = DefaultScope.get_current_instance()
        print(scope and scope.scope_name)
        print(MODELS.get('mmaction.LinearVideoTransformer').__name__)
"""


def test_workers_apply_workarounds_and_classes_are_registered(tmp_path):
    """Workers of any start method import mmvidattn.

    The first lookup registers the classes. ``register_all_modules`` sets the
    scope only if requested.
    """
    (tmp_path / 'spawn.py').write_text(SPAWN)
    name = 'LinearVideoTransformer'
    assert python(tmp_path / 'spawn.py').stdout.split() == [
        'spawn', 'fork', 'None', name, 'mmaction', name]


@pytest.mark.slow
def test_tools_of_mmaction_wheel_run_on_cpu(tmp_path, motion_dir):
    tools = Path(mmaction.__file__).parent / '.mim/tools'
    config = write_config(
        tmp_path / 'config.py', 'mmaction', motion_dir, processes=2)
    config.write_text(
        "custom_imports = dict(imports=['mmvidattn'])\n"
        + config.read_text()
        + "pipeline.insert(5, dict(type='ColorJitter'))\n"
        "val_cfg = dict(type='ValLoop', fp16=True)\n"
        'train_cfg = dict(max_epochs=1)\n')

    def run(*command: Any) -> str:
        return python(*command, '--work-dir', tmp_path / 'run').stdout

    trained = run('-m', 'torch.distributed.run', '--standalone',
                  '--nproc_per_node=2', tools / 'train.py', config,
                  '--launcher', 'pytorch', '--amp')
    assert 'Distributed launcher: pytorch' in trained
    assert 'acc/top1' in trained
    resumed = run(tools / 'train.py', config, '--resume', '--amp',
                  '--cfg-options', 'train_cfg.max_epochs=2',
                  'train_dataloader.batch_size=4')
    assert 'resumed epoch: 1' in resumed
    tested = run(tools / 'test.py', config, tmp_path / 'run/iter_8.pth')
    assert 'acc/top5' in tested
