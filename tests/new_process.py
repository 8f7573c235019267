# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Checks that need a process which has not imported mmvidattn.

``compat_symptoms.py`` calls each function in a fork, in an empty folder, with
the folder of the motion set. ``test_compat.py`` reports the errors.
"""
import contextlib
import importlib
import io
import json
import os
import pkgutil
import re
import runpy
import sys
import types
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from mmengine.registry import Registry

ROOT = Path(__file__).resolve().parent.parent
PACKAGES = 'mmaction', 'mmengine', 'mmcv'
# Packages without their submodules.
PLAIN = ('numpy', 'torch', 'torch.cuda', 'torch.hub', 'torch.serialization',
         'torch.nn.functional', 'torch.utils.data', 'pickle', 'yaml', 'json',
         'random', 'multiprocessing')
# A user's config with classes of mmaction2 and one backbone of mmvidattn.
CONFIG = '''
_base_ = 'mmaction::_base_/default_runtime.py'
custom_imports = dict(imports=['mmvidattn'], allow_failed_imports=False)
model = dict(
    type='Recognizer3D',
    backbone=dict(type='LinearVideoTransformer', num_frames=4, patch_size=16,
                  arch=dict(embed_dims=16, num_layers=1, num_heads=2)),
    cls_head=dict(type='I3DHead', num_classes=8, in_channels=16,
                  average_clips='prob'),
    data_preprocessor=dict(
        type='ActionDataPreprocessor', mean=[127.5] * 3, std=[127.5] * 3,
        format_shape='NCTHW'))
loader = dict(
    batch_size=4, num_workers=0,
    sampler=dict(type='DefaultSampler', shuffle=False),
    dataset=dict(type='VideoDataset', data_root=MOTION,
                 data_prefix=dict(video=MOTION), pipeline=[
                     dict(type='DecordInit'),
                     dict(type='UniformSample', clip_len=4, test_mode=True),
                     dict(type='DecordDecode'),
                     dict(type='Resize', scale=(32, 32), keep_ratio=False),
                     dict(type='FormatShape', input_format='NCTHW'),
                     dict(type='PackActionInputs')]))
train_dataloader = dict(
    loader, dataset=dict(loader['dataset'], ann_file='train.txt'))
val_dataloader = test_dataloader = dict(loader, dataset=dict(
    loader['dataset'], ann_file='val.txt', test_mode=True))
val_evaluator = test_evaluator = dict(type='AccMetric')
train_cfg = dict(type='EpochBasedTrainLoop', max_epochs=1)
val_cfg = dict(type='ValLoop')
test_cfg = dict(type='TestLoop')
optim_wrapper = dict(optimizer=dict(type='SGD', lr=0.01))
'''


def contents(value: Any) -> dict:
    """Return what may change inside of a value: entries, or code."""
    if isinstance(value, types.FunctionType):
        return dict(code=value.__code__)
    if isinstance(value, Registry):
        return dict(value.module_dict)
    return dict(value) if isinstance(value, dict) else {}


def snapshot() -> dict[str, tuple[Any, dict]]:
    """Return the attributes of other packages and of the classes in them."""
    owners = {name: module for name, module in sys.modules.items()
              if (name.partition('.')[0] in PACKAGES or name in PLAIN)
              and isinstance(module, types.ModuleType)}
    owners |= {f'{name}.{value.__qualname__}': value
               for name, module in owners.items()
               for value in [*vars(module).values()]
               if isinstance(value, type) and value.__module__ == name}
    return {f'{name}.{key}': (value, contents(value))
            for name, owner in owners.items()
            for key, value in [*vars(owner).items()]
            if not key.startswith('_abc_') and key not in (
                '__builtins__', '__warningregistry__', '_module_dict')}


def import_changes_exactly_what_it_lists(motion: Path) -> None:
    """Compare the changes that an import makes with the list of changes.

    New entries of a dictionary or of a registry do not count, because classes
    are registered.
    """
    warnings.simplefilter('ignore')
    for package in PACKAGES:
        package = importlib.import_module(package)
        for info in pkgutil.walk_packages(
                package.__path__, package.__name__ + '.',
                onerror=lambda name: None):
            with contextlib.suppress(Exception):
                importlib.import_module(info.name)
    for name in PLAIN:
        importlib.import_module(name)
    before = snapshot()
    import mmvidattn

    after = snapshot()
    owners = {place.rpartition('.')[0] for place in before}
    # An import sets a submodule in its package.
    changed = {place for place in after.keys() - before.keys()
               if place.rpartition('.')[0] in owners
               and not isinstance(after[place][0], types.ModuleType)}
    for place, (old, inside) in before.items():
        new, now = after.get(place, (None, {}))
        other = [key for key, value in inside.items()
                 if now.get(key) is not value]
        if type(new) is not type(old) or (
                new is not old and not isinstance(old, dict)):
            changed.add(place)
        elif other and isinstance(old, types.FunctionType):
            changed.add(f'{place}.__code__')
        elif other and isinstance(old, dict):
            changed.add(f'{place}[...]')
        else:
            changed |= {f'{place}[{key}]' for key in other}
    listed = {change for change in mmvidattn.compat.registry.changes
              if change.startswith(PACKAGES)}
    assert changed == listed, changed ^ listed
    assert len(listed) > 20


class Seen:
    """Dataset that shows whether a worker has imported mmvidattn."""

    def __len__(self) -> int:
        return 4

    def __getitem__(self, index: int) -> int:
        return int('mmvidattn' in sys.modules)


def workers_of_any_start_method_import_the_package(motion: Path) -> None:
    from mmengine.runner import Runner

    import mmvidattn  # noqa: F401

    # A spawned process imports the main program again, if it has a file.
    del sys.modules['__main__'].__file__
    for method in 'spawn', 'fork':
        loader = Runner.build_dataloader(
            dict(dataset=Seen(), batch_size=4, num_workers=1,
                 multiprocessing_context=method,
                 sampler=dict(type='DefaultSampler', shuffle=False)), seed=1)
        [seen] = loader
        assert all(seen), method


def first_lookup_registers_the_classes(motion: Path) -> None:
    """It finds scoped names, also through child registries.

    ``register_all_modules`` sets the scope only if requested.
    """
    from mmaction.registry import HOOKS, TRANSFORMS
    from mmengine.registry import MODELS, DefaultScope

    import mmvidattn  # noqa: F401
    from mmvidattn.utils import register_all_modules
    assert MODELS.get('mmaction.DualFormer').__name__ == 'DualFormer'
    assert TRANSFORMS.get('mmaction.VideoReaderInit')
    assert HOOKS.get('mmaction.NanGuardHook') is HOOKS.get('SkipNanStepsHook')
    from mmaction.registry import MODELS
    child = Registry('model', parent=MODELS, scope='mine')
    assert child.get('XViT').__name__ == 'XViT'
    assert MODELS.get('NoSuchNetwork') is None
    register_all_modules(init_default_scope=False)
    assert DefaultScope.get_current_instance() is None
    register_all_modules(init_default_scope=True)
    assert DefaultScope.get_current_instance().scope_name == 'mmaction'


def config_of_a_user_needs_only_our_import(motion: Path) -> None:
    """Train, test and count with mmaction2's own programs."""
    import mmaction
    import torch
    tools = Path(mmaction.__file__).parent / '.mim/tools'
    Path('mine.py').write_text(CONFIG.replace('MOTION', repr(str(motion))))
    for tool, *args in (('train.py', '--amp', '--work-dir', 'work'),
                        ('test.py', 'work/epoch_1.pth', '--work-dir', 'work')):
        sys.argv = [tool, 'mine.py', *args]
        runpy.run_path(str(tools / tool), run_name='__main__')
    page = (ROOT / 'docs/tutorials/from_mmaction2.md').read_text('utf-8')
    line, = re.findall("python -c '(import mmvidattn, .*)'", page)
    sys.argv = ['', str(tools / 'analysis_tools/get_flops.py'), 'mine.py',
                '--shape', '1', '3', '4', '32', '32']
    with contextlib.redirect_stdout(io.StringIO()) as out:
        exec(line, {})
    assert 'Params:' in out.getvalue()
    val, test = (json.loads(path.read_text().splitlines()[-1])
                 for path in (*Path().glob('work/*/vis_data/scalars.json'),
                              *Path().glob('work/*/*.json'))
                 if 'acc/top1' in path.read_text())
    for key in ('acc/top1', 'acc/top5', 'acc/mean1'):
        assert val[key] == test[key]
    assert torch.load('work/epoch_1.pth')['meta']['iter'] == 4


def trains_and_predicts_without_decord(motion: Path) -> None:
    """As on Linux on ARM, and on macOS."""
    sys.modules['decord'] = None
    import mmvidattn

    # A program that imports only mmvidattn can use every package.
    for name in mmvidattn.__all__:
        getattr(mmvidattn, name)
    assert mmvidattn.convert.convert.__name__ == 'convert'
    from mmvidattn.commands import main
    name = 'linear_ff_tiny_motion'
    options = ['--work-dir', 'out', '--cfg-options', f'data_root={motion}',
               'train_cfg.max_epochs=1', *(
                   f'{part}_dataloader.{option}'
                   for part in ('train', 'val')
                   for option in ('num_workers=0', 'dataset.indices=2',
                                  'persistent_workers=False'))]
    for use_decord in (
            lambda: main(['train', name, *options, 'video_backend=decord']),
            lambda: mmvidattn.VideoClassifier(
                name, cfg_options=dict(video_backend='decord'))):
        with pytest.raises((SystemExit, ImportError),
                           match='--cfg-options video_backend=pyav'):
            use_decord()
    main(['train', name, *options])
    assert Path('out/epoch_1.pth').is_file()
    log = ''.join(path.read_text() for path in Path('out').rglob('*.log'))
    assert re.search('training waited for data in .* a worker opened and '
                     'decoded a clip in', log)
    answer = mmvidattn.VideoClassifier(name)(f'{motion}/val/000000.mp4')
    assert answer.predictions[0].label
    assert sys.modules['decord'] is None


def a_classifier_imports_only_what_it_uses(motion: Path) -> None:
    from mmvidattn import VideoClassifier
    VideoClassifier('linear_ff_tiny_motion', 'default')
    names = [name for name in sys.modules if name.startswith('mmvidattn')]
    assert len(names) <= 70
    unused = tuple(f'mmvidattn.{folder}.' for folder in (
        'engine', 'evaluation', 'live', 'convert', 'export', 'online',
        'losses', 'datasets.annotations'))
    assert not [name for name in names if name.startswith(unused)]


CHECKS: dict[str, Callable[[Path], None]] = {
    function.__name__: function for function in (
        import_changes_exactly_what_it_lists,
        workers_of_any_start_method_import_the_package,
        first_lookup_registers_the_classes,
        config_of_a_user_needs_only_our_import,
        trains_and_predicts_without_decord,
        a_classifier_imports_only_what_it_uses)}


def run(name: str, folder: Path, motion: Path) -> None:
    """Run a check without a trace of mmvidattn, in a new folder."""
    for module in [name for name in sys.modules
                   if name.startswith('mmvidattn')]:
        del sys.modules[module]
    (folder / name).mkdir()
    os.chdir(folder / name)
    CHECKS[name](motion)
