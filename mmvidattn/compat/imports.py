# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Workarounds for imports that fail or print warnings."""
import importlib
import importlib.util
import sys
import types
import warnings
from contextlib import suppress
from pathlib import Path

from .registry import changes, replace, workaround, wrap


@workaround()
def quiet_warnings() -> None:
    """Ignore warnings that calls in mmengine, mmcv and torch cause.

    The warnings are about ``torch.cuda.amp.GradScaler`` and DDP's
    ``broadcast_buffers`` (deprecated in torch), ``pkg_resources`` (deprecated
    in setuptools), the missing CUDA operator of mmcv-lite, and the strides
    that torch gives to the gradient of a depth-wise convolution under DDP.

    Symptom: Warnings that no user can act on
    Until: mmengine and mmcv-lite no longer cause them
    Upstream: open-mmlab/mmcv#3325 (pkg_resources)
    """
    for message, module in (
            (r'`torch\.cuda\.amp\.GradScaler\(args\.\.\.\)` is depr',
             'mmengine'),
            (r'`broadcast_buffers` is deprecated', 'mmengine'),
            (r'pkg_resources is deprecated as an API', 'mmengine'),
            (r'Deprecated call to `pkg_resources\.declare_namespace',
             'pkg_resources'),
            (r'Fail to import ``MultiScaleDeformableAttention``', 'mmcv'),
            (r'Grad strides do not match bucket view strides', '')):
        warnings.filterwarnings('ignore', message, module=module)
        changes.append(f'warnings.filters: {message} in {module or "any"}')


@workaround()
def require_mmcv() -> None:
    """Explain how to install mmcv.

    Symptom: `No module named 'mmcv'` from deep inside an import of mmaction2
    Until: mmcv and mmcv-lite provide different modules, so that one can be a
        hard requirement
    """
    if importlib.util.find_spec('mmcv') is None:
        raise ImportError('mmvidattn needs mmcv: install it with `pip install '
                          '"mmvidattn[lite]"` (mmcv-lite is enough).')


@workaround(before=['mmaction.models', 'mmengine.runner'])
def hide_broken_torchvision() -> None:
    """Treat a torchvision that cannot be imported as absent.

    A torchvision built for another torch fails with an error that mmengine's
    environment report does not expect. This package does not need it.

    Symptom: `operator torchvision::nms does not exist` when a Runner is built
    Until: mmengine's `collect_env` survives it
    """
    try:
        import torchvision  # noqa: F401
    except ModuleNotFoundError:
        pass
    except Exception as error:
        for name in [n for n in sys.modules if n.startswith('torchvision.')]:
            del sys.modules[name]
        sys.modules['torchvision'] = None
        changes.append("sys.modules['torchvision']")
        warnings.warn('torchvision is installed but broken, and is treated '
                      f'as absent: {type(error).__name__}: {error}')


@workaround(before=['mmaction.models'])
def add_missing_drn() -> None:
    """Add a stand-in for the module ``mmaction.models.localizers.drn``.

    The module has no ``__init__.py``, so mmaction2's wheel lacks it. In
    mmaction2's sources, it needs torchvision. The stand-in has a class DRN,
    whose constructor raises an error that explains this.

    Symptom: `No module named 'mmaction.models.localizers.drn'`; from
        mmaction2's sources, `No module named 'torchvision'`
    Until: mmaction2's wheel has the folder
    Upstream: open-mmlab/mmaction2#2714
    """
    name = 'mmaction.models.localizers.drn'
    package = importlib.util.find_spec('mmaction').submodule_search_locations
    if name in sys.modules or importlib.util.find_spec('torchvision') and (
            Path(package[0], 'models/localizers/drn/drn.py').exists()):
        return
    from mmaction.registry import MODELS

    class DRN:

        def __init__(self, *args, **kwargs) -> None:
            raise ImportError('DRN is missing from the wheel of mmaction2: '
                              'install mmaction2 from its sources, and '
                              'torchvision')

    MODELS.register_module(module=DRN)
    parent, child = types.ModuleType(name), types.ModuleType(f'{name}.drn')
    parent.__path__, parent.drn, child.DRN = [], child, DRN
    sys.modules.update({name: parent, f'{name}.drn': child})
    changes.extend([f"sys.modules['{name}']", f"sys.modules['{name}.drn']",
                    "MODELS['DRN']"])


@workaround(before=['mmaction.models', 'mmpretrain'])
def leave_out_multimodal() -> None:
    """Treat the multimodal models of mmaction2 and mmpretrain as absent.

    They import names that transformers moved in 4.56 and removed in 5, which
    breaks the import of all models. Because importing mmpretrain would import
    them, the module with mmpretrain's switch is loaded alone before.

    Symptom: `cannot import name ... from 'transformers'` on `import
        mmaction.models`, `TypeError: NoneType takes no arguments` on `import
        mmpretrain`, with transformers 4.56 or later
    Until: the multimodal models of both run on transformers 4.56
    """
    from mmaction.utils import dependency
    if not dependency.satisfy_requirement('transformers>=4.56.0'):
        return
    replace(dependency, 'WITH_MULTIMODAL', False)
    name = 'mmpretrain.utils.dependency'
    package = importlib.util.find_spec('mmpretrain')
    path = package and Path(package.submodule_search_locations[0], 'utils',
                            'dependency.py')
    # Early releases lack multimodal models.
    if path is None or not path.is_file():
        return
    if name not in sys.modules:
        spec = importlib.util.spec_from_file_location(name, path)
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        sys.modules[name] = module
        changes.append(f"sys.modules['{name}']")
    replace(sys.modules[name], 'WITH_MULTIMODAL', False)


@workaround(after=['mmengine.config'])
def know_frozen_modules() -> None:
    """Treat the modules of the standard library as built-in.

    mmengine decides by the path of a module's file. Frozen modules have no
    file, and in a virtual environment, most files are elsewhere.

    Symptom: `RuntimeError` from a config in the new style that imports
        `os.path`, or `functools` in a virtual environment
    Until: mmengine uses `sys.stdlib_module_names`
    """
    from mmengine.config import config, utils
    if all(map(utils._is_builtin_module, ('os', 'functools'))):
        return

    def is_builtin(original, module_name):
        return (module_name.partition('.')[0] in sys.stdlib_module_names
                or original(module_name))

    for module in config, utils:
        wrap(module, '_is_builtin_module', is_builtin)


@workaround(after=['mmengine.config'])
def find_our_base_configs() -> None:
    """Find the configs of this package under ``mmvidattn::``.

    mmengine knows only the packages of OpenMMLab, and needs a folder in the
    name of a config.

    Symptom: `_get_package_and_cfg_path is used for get external package` for
        `_base_ = 'mmvidattn::linear_ff_ssv2.py'`
    Until: mmengine finds the configs of any installed package
    """
    from mmengine.config import Config

    def get_path(original, cfg_path, filename):
        package, _, name = cfg_path.partition('::')
        if package != 'mmvidattn' or not name:
            return original(cfg_path, filename)
        from mmvidattn.utils.config_folder import find_base
        # Without a scope, types are looked up like in the inheriting config.
        return str(find_base(name)), None

    wrap(Config, '_get_cfg_path', get_path)


@workaround(after=['mmaction.datasets'])
def explain_missing_decord() -> None:
    """Explain once, when a step is built, how to decode without decord.

    Symptom: `Please run "pip install decord" to install Decord first.` of
        every sample, where decord has no wheel: Linux on ARM, macOS
    Until: mmaction2 decodes with a library that has one
    Upstream: dmlc/decord#213 (macOS), #297 (Linux on ARM)
    """
    # A ValueError means that sys.modules['decord'] is None.
    with suppress(ValueError):
        if importlib.util.find_spec('decord') is not None:
            return
    from mmaction.datasets import DecordInit

    def init(original, self, *args, **kwargs):
        raise ImportError(
            f'{type(self).__name__} needs decord, which is not installed: '
            'decode with --cfg-options video_backend=pyav; or, on Linux or '
            'Windows on x86-64, pip install decord')

    wrap(DecordInit, '__init__', init)
