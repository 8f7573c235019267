# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Patches of mmaction2 1.2 and mmengine 0.10 for a current Python and PyTorch.

Each function under :func:`patch` works around one fault, where the fault
lives, so that mmaction2's own tools run as well once a config imports this
package. It acts only where the library is broken, and returns why if there is
nothing to do here. ``python -m mmvidattn.compat`` prints them all: the
symptom, the upstream issue, when the patch can go and what it changed.
``MMVIDATTN_SKIP_PATCHES=name,name`` leaves some out.
"""
from __future__ import annotations

import ast
import atexit
import codecs
import collections
import datetime
import functools
import gc
import importlib
import importlib.util
import inspect
import io
import os
import pickle
import platform
import sys
import textwrap
import types
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

SKIP = 'MMVIDATTN_SKIP_PATCHES'


@dataclass
class Patch:
    """A workaround of one fault, and what became of it in this process.

    Attributes:
        function: Applies it. Returns why, if there is nothing to do here.
        symptom: The error that a user meets, or the wrong result.
        until: When the patch can go.
        upstream: Where the fault is reported, or none.
        changes: What it replaced or added, by full names.
        skipped: Why it does nothing here; None if it acts.
        is_applied: Whether :func:`apply` has run it.
    """
    function: Callable[[], str | None]
    symptom: str
    until: str
    upstream: str | None
    changes: list[str] = field(default_factory=list)
    skipped: str | None = None
    is_applied: bool = False

    @property
    def name(self) -> str:
        return self.function.__name__


PATCHES: list[Patch] = []
# What the patch that is being applied has changed so far.
_changes: list[str] = []


def patch(symptom: str, until: str, upstream: str | None = None) -> Callable:
    """Add a function to the patches; see :class:`Patch` for the arguments."""

    def register(function: Callable) -> Callable:
        PATCHES.append(Patch(function, symptom, until, upstream))
        return function

    return register


def apply() -> None:
    """Apply every patch; a second call changes nothing.

    Raises:
        ValueError: If ``MMVIDATTN_SKIP_PATCHES`` names none of them.
    """
    skip = {name for name in os.environ.get(SKIP, '').split(',') if name}
    unknown = skip - {patch.name for patch in PATCHES}
    if unknown:
        raise ValueError(
            f'{SKIP} must name patches ({", ".join(p.name for p in PATCHES)})'
            f', got {", ".join(sorted(unknown))}')
    for patch in PATCHES:
        if patch.is_applied:
            continue
        _changes.clear()
        patch.skipped = (f'{SKIP} names it' if patch.name in skip else
                         patch.function())
        patch.changes = [*_changes]
        patch.is_applied = True


def describe() -> str:
    """Say what is patched in this process, and what is not needed here."""
    versions = ', '.join(
        f'{name} {_version(name)}' for name in (
            'mmaction2', 'mmengine', 'mmcv', 'torch', 'numpy'))
    lines = [f'Patches on {versions}, Python {platform.python_version()}:']
    for patch in PATCHES:
        state = (f'not applied: {patch.skipped}' if patch.skipped else
                 'applied' if patch.is_applied else 'not applied yet')
        lines += ['', f'{patch.name} ({state})']
        for key, text in (('symptom', patch.symptom),
                          ('patch', patch.function.__doc__),
                          ('upstream', patch.upstream or 'not reported'),
                          ('until', patch.until)):
            lines += textwrap.wrap(
                ' '.join(text.split()), 79, initial_indent=f'  {key:10}',
                subsequent_indent=' ' * 12)
        lines += [f'  {"changes" if not i else "":10}{change}'
                  for i, change in enumerate(patch.changes)]
    return '\n'.join(lines)


def main() -> None:
    """Print the patches of this process, for ``python -m mmvidattn.compat``.
    """
    print(describe())


def _version(name: str) -> str:
    module = sys.modules.get({'mmaction2': 'mmaction'}.get(name, name))
    return getattr(module, '__version__', 'not imported')


class _Overlay(types.ModuleType):
    """A module with some names replaced; all others are looked up in it."""

    def __init__(self, module: Any, **names: Any) -> None:
        super().__init__(module.__name__)
        self.__dict__.update(names, _module=module)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._module, name)


def _set(owner: Any, name: str, value: Any) -> None:
    """Set an attribute of a module or a class, and note it in the patch."""
    path = owner.__name__
    if isinstance(owner, type):
        path = f'{owner.__module__}.{owner.__qualname__}'
    setattr(owner, name, value)
    _changes.append(f'{path}.{name}')


def _wrap(owner: Any, name: str, wrapper: Callable[..., Any]) -> None:
    """Let ``owner.name(...)`` run ``wrapper(original, ...)``."""
    original = getattr(owner, name)

    @functools.wraps(original)
    def patched(*args, **kwargs):
        return wrapper(original, *args, **kwargs)

    is_static = isinstance(inspect.getattr_static(owner, name), staticmethod)
    _set(owner, name, staticmethod(patched) if is_static else patched)


@functools.cache
def _warn_once(message: str) -> None:
    warnings.warn(message, stacklevel=4)


def _on_cpu() -> bool:
    from mmengine.device import get_device
    return get_device() == 'cpu'


def _numpy_core() -> types.ModuleType:
    import numpy as np
    name = 'numpy._core' if int(np.__version__.split('.')[0]) > 1 else \
        'numpy.core'
    for part in 'multiarray', 'numeric':
        importlib.import_module(f'{name}.{part}')
    return sys.modules[name]


@patch('Warnings that every process prints and no user can act on',
       until='an mmengine and mmcv-lite that stop to cause them',
       upstream='open-mmlab/mmcv#3325 (pkg_resources)')
def quiet_warnings() -> None:
    """Ignore them, where they are about a call of mmengine or mmcv.

    These are ``torch.cuda.amp.GradScaler`` and DDP's ``broadcast_buffers``
    (deprecated in torch), ``pkg_resources`` (deprecated in setuptools), the
    missing CUDA operator of mmcv-lite, and, wherever it comes from, the
    strides that torch itself gives to the gradient of a depth-wise
    convolution under DDP.
    """
    for message, module in (
            (r'`torch\.cuda\.amp\.GradScaler\(args\.\.\.\)` is depr',
             'mmengine'),
            (r'`broadcast_buffers` is deprecated', 'mmengine'),
            (r'pkg_resources is deprecated as an API', 'mmengine'),
            (r'Deprecated call to `pkg_resources\.declare_namespace',
             'pkg_resources'),
            (r'Fail to import ``MultiScaleDeformableAttention``', 'mmcv'),
            (r'Grad strides do not match bucket view strides', ''),
            # Of Python, about `python -m mmvidattn.compat`.
            (r"'mmvidattn\.compat' found in sys\.modules", 'runpy')):
        warnings.filterwarnings('ignore', message, module=module)
        _changes.append(f'warnings.filters: {message} in {module or "any"}')


@patch("`No module named 'mmcv'` from deep inside an import of mmaction2",
       until='as long as mmcv and mmcv-lite provide one module, so that '
       'neither can be a hard requirement')
def require_mmcv() -> str | None:
    """Say how to install it."""
    if importlib.util.find_spec('mmcv') is None:
        raise ImportError('mmvidattn needs mmcv: install it with `pip install '
                          '"mmvidattn[lite]"` (mmcv-lite is enough).')
    return 'mmcv is installed'


@patch('`operator torchvision::nms does not exist` when a Runner is built',
       until="mmengine's `collect_env` survives it")
def hide_broken_torchvision() -> str | None:
    """Treat a torchvision that cannot be imported as absent.

    One of another build than torch fails with an error that mmengine's
    environment report does not expect. Nothing here needs it.
    """
    try:
        import torchvision  # noqa: F401
    except ModuleNotFoundError:
        return 'torchvision is not installed'
    except Exception as error:
        for name in [n for n in sys.modules if n.startswith('torchvision.')]:
            del sys.modules[name]
        sys.modules['torchvision'] = None
        _changes.append("sys.modules['torchvision']")
        warnings.warn('torchvision is installed but broken, and is treated '
                      f'as absent: {type(error).__name__}: {error}')
        return None
    return 'torchvision works'


@patch("`No module named 'mmaction.models.localizers.drn'`; from mmaction2's "
       "sources, `No module named 'torchvision'`",
       until='the first release of mmaction2 that ships the folder, and needs '
       'no torchvision for it',
       upstream='open-mmlab/mmaction2#2714')
def add_missing_drn() -> str | None:
    """Put a module in its place.

    The folder has no ``__init__.py``, so mmaction2's wheel lacks it. Where it
    is there it needs torchvision. Its only class is replaced by one that says
    so when built.
    """
    name = 'mmaction.models.localizers.drn'
    package = importlib.util.find_spec('mmaction').submodule_search_locations
    folder = Path(package[0], 'models', 'localizers', 'drn')
    is_there = (folder / 'drn.py').exists()
    if name in sys.modules or is_there and importlib.util.find_spec(
            'torchvision'):
        return 'it is there'
    from mmaction.registry import MODELS

    class DRN:

        def __init__(self, *args, **kwargs) -> None:
            raise ImportError(
                'DRN needs torchvision' if is_there else
                'DRN is missing from the wheel of mmaction2 1.2.0; install '
                'mmaction2 from its sources, and torchvision, to use it')

    MODELS.register_module(module=DRN)
    parent, child = types.ModuleType(name), types.ModuleType(f'{name}.drn')
    parent.__path__, parent.drn, child.DRN = [], child, DRN
    sys.modules.update({name: parent, f'{name}.drn': child})
    _changes.extend([f"sys.modules['{name}']", f"sys.modules['{name}.drn']",
                     "MODELS['DRN']"])
    return None


@patch("`cannot import name ... from 'transformers'` on `import mmaction."
       'models`, with transformers 4.56 or later',
       until='VindLU runs on transformers 4.56')
def leave_out_multimodal() -> str | None:
    """Treat mmaction2's multimodal models as absent.

    They import names that transformers moved in 4.56 and removed in 5, which
    breaks the import of all models.
    """
    from mmaction.utils import dependency
    if not dependency.satisfy_requirement('transformers>=4.56.0'):
        return 'transformers is not installed, or old enough'
    _set(dependency, 'WITH_MULTIMODAL', False)
    return None


@patch('`TypeError: NoneType takes no arguments` on `import mmpretrain`, with '
       'transformers 4.56 or later',
       until="mmpretrain's multimodal models run on transformers 4.56")
def leave_out_multimodal_of_mmpretrain() -> str | None:
    """Treat mmpretrain's multimodal models as absent.

    Importing the package imports them, so the module that tells whether they
    can be used is loaded beforehand, by itself.
    """
    from mmaction.utils.dependency import satisfy_requirement
    package = importlib.util.find_spec('mmpretrain')
    if package is None:
        return 'mmpretrain is not installed'
    if not satisfy_requirement('transformers>=4.56.0'):
        return 'transformers is not installed, or old enough'
    name = 'mmpretrain.utils.dependency'
    path = Path(package.submodule_search_locations[0], 'utils',
                'dependency.py')
    if not path.is_file():
        return 'this mmpretrain has no multimodal models'
    if name not in sys.modules:
        spec = importlib.util.spec_from_file_location(name, path)
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        sys.modules[name] = module
        _changes.append(f"sys.modules['{name}']")
    _set(sys.modules[name], 'WITH_MULTIMODAL', False)
    return None


@patch('`Unsupported global: GLOBAL mmengine.logging...HistoryBuffer` on '
       'resume',
       until="mmengine's checkpoints are plain types",
       upstream='open-mmlab/mmengine#1655, #1650')
def load_own_checkpoints() -> None:
    """Allow what mmengine's checkpoints hold, and nothing else.

    That is its message hub and numpy numbers, of numpy 1 and 2;
    ``getattr``, by which a HistoryBuffer names its statistics, only on that
    class.
    """
    import numpy as np
    import torch
    from mmengine.logging import HistoryBuffer

    # The unpickler goes by these two attributes, on every version of torch.
    def allow_as(function: Callable, module: str, name: str) -> Callable:

        def stand_in(*args):
            return function(*args)

        stand_in.__module__ = module
        stand_in.__name__ = stand_in.__qualname__ = name
        return stand_in

    def get_statistic(obj: Any, name: str) -> Any:
        if obj is not HistoryBuffer or name.startswith('_'):
            raise pickle.UnpicklingError(
                f'refused to load getattr({obj!r}, {name!r}) from a '
                'checkpoint: only the statistics of HistoryBuffer are allowed')
        return getattr(obj, name)

    multiarray = _numpy_core().multiarray
    allowed = [
        HistoryBuffer, np.ndarray, np.dtype,
        allow_as(get_statistic, 'builtins', 'getattr')
    ]
    allowed += {type(np.dtype(code)) for code in '?bBhHiIlLqQefdUS'}
    for module in 'numpy.core.multiarray', 'numpy._core.multiarray':
        for name in '_reconstruct', 'scalar':
            allowed.append(
                allow_as(getattr(multiarray, name), module, name))
    torch.serialization.add_safe_globals(allowed)
    _changes.append('torch.serialization.get_safe_globals()')


@patch('A checkpoint from the web runs code when it is loaded; with torch '
       'below 2.6, so does one on the disk',
       until='mmengine passes `weights_only` to torch')
def load_weights_only() -> None:
    """Load weights only, unless told otherwise.

    ``torch.hub`` unpickles unchecked by default, and so does torch below 2.6.
    An explicit ``weights_only=False`` and
    ``TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD=1`` hold, with one warning.
    """
    import torch
    from mmengine.runner import checkpoint
    from mmengine.utils import digit_version

    def load(original, *args, **kwargs):
        weights_only = kwargs.get('weights_only')
        if weights_only is None:
            forced = os.getenv('TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD', '0')
            weights_only = forced.lower() not in ('1', 'y', 'yes', 'true')
        if not weights_only:
            _warn_once('Checkpoints are loaded with weights_only=False: such '
                       'a file can run any code')
        return original(*args, **{**kwargs, 'weights_only': weights_only})

    _wrap(checkpoint, 'load_url', load)
    if digit_version(torch.__version__) < digit_version('2.6'):
        _set(checkpoint, 'torch', _Overlay(
            torch, load=functools.partial(load, torch.load)))


def _harmless_names() -> tuple[dict[str, Any], dict[str, tuple[str, str]]]:
    """Names that data may have in a pickle.

    Returns:
        Those that a pickle cannot change, and the classes written in Python,
        by their modules.
    """
    import numpy as np
    import torch

    def load_storage(data: bytes) -> Any:
        return torch.load(io.BytesIO(data), 'cpu', weights_only=True)

    # Made anew for each file, as a pickle can set attributes of a function.
    def fresh(function: Callable) -> Callable:
        return lambda *args: function(*args)

    # A pickle of protocol 2, mmengine's default, has the name of Python 2.
    names = {f'{module}.{t.__name__}': t
             for module in ('builtins', '__builtin__') for t in (
                 set, frozenset, complex, bytearray, range, slice, list, dict,
                 tuple, str, int, float, bool, bytes)}
    names['__builtin__.xrange'] = range
    names |= {f'{t.__module__}.{t.__name__}': t for t in (
        collections.OrderedDict, collections.defaultdict, collections.deque,
        datetime.date, datetime.datetime, datetime.time, datetime.timedelta,
        datetime.timezone)}
    names |= {f'torch.{name}': value for name, value in vars(torch).items()
              if isinstance(value, torch.dtype)}
    names |= {
        '_codecs.encode': codecs.encode,
        'numpy.ndarray': np.ndarray,
        'numpy.dtype': np.dtype,
        'torch.Size': torch.Size,
        'torch.device': torch.device,
        'torch.storage._load_from_bytes': load_storage,
    }
    for name in '_rebuild_tensor_v2', '_rebuild_parameter':
        names[f'torch._utils.{name}'] = fresh(getattr(torch._utils, name))
    core = _numpy_core()
    for old in 'numpy.core', 'numpy._core':
        for name in '_reconstruct', 'scalar':
            names[f'{old}.multiarray.{name}'] = getattr(core.multiarray, name)
        names[f'{old}.numeric._frombuffer'] = fresh(core.numeric._frombuffer)
    classes = {
        'collections': ['Counter'],
        'pathlib': ['Path', 'PosixPath', 'WindowsPath', 'PurePath',
                    'PurePosixPath', 'PureWindowsPath'],
        'mmengine.config.config': ['Config', 'ConfigDict'],
        'mmengine.structures.base_data_element': ['BaseDataElement'],
        'mmengine.structures.instance_data': ['InstanceData'],
        'mmengine.structures.label_data': ['LabelData'],
        'mmengine.structures.pixel_data': ['PixelData'],
        'mmaction.structures.action_data_sample': ['ActionDataSample'],
    }
    # Where Python 3.13 has the paths.
    classes['pathlib._local'] = classes['pathlib']
    return names, {f'{module}.{name}': (module.removesuffix('._local'), name)
                   for module, names in classes.items() for name in names}


class _ClassFound(Exception):
    """A pickle names a class written in Python."""


class _Finder:
    """Finds what is harmless, for both unpicklers and for YAML.

    Args:
        with_classes: Whether classes written in Python may be found.
    """

    def __init__(self, with_classes: bool) -> None:
        self.names, self.classes = _harmless_names()
        self.with_classes = with_classes

    def __call__(self, module: str, name: str) -> Any:
        path = f'{module}.{name}'
        if path in self.names:
            return self.names[path]
        if path not in self.classes:
            raise pickle.UnpicklingError(
                f'refused: loading it would call {path}, which is not data. '
                f'If you trust the file, set {SKIP}=load_data_as_data')
        if not self.with_classes:
            raise _ClassFound
        module, name = self.classes[path]
        return getattr(importlib.import_module(module), name)


class _FastUnpickler(pickle.Unpickler):

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.find_class = _Finder(with_classes=False)


class _CarefulUnpickler(pickle._Unpickler):
    """Written in Python, so that it can refuse to change a class."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.find_class = _Finder(with_classes=True)

    def load_build(self) -> None:
        if isinstance(self.stack[-2], (type, types.FunctionType)):
            raise pickle.UnpicklingError(
                f'refused: loading it would change {self.stack[-2]}')
        super().load_build()

    def load_reduce(self) -> None:
        # Called by its name, a Config would read a file.
        if getattr(self.stack[-2], '__name__', None) == 'Config':
            raise pickle.UnpicklingError(
                'refused: loading it would call mmengine.config.Config')
        super().load_reduce()

    dispatch = {**pickle._Unpickler.dispatch, pickle.BUILD[0]: load_build,
                pickle.REDUCE[0]: load_reduce}


@patch('A pickle or a YAML file of annotations runs code when '
       '`mmengine.load` reads it',
       until='mmengine loads data only')
def load_data_as_data() -> None:
    """Load data and nothing else.

    That is plain types, the containers, dates and paths of Python's library,
    numpy's arrays, torch's tensors, and mmengine's and mmaction2's configs
    and samples; in YAML the tags that PyYAML writes for these.
    """
    import yaml
    from mmengine.fileio.handlers import pickle_handler, yaml_handler
    from yaml.constructor import ConstructorError, FullConstructor

    def load(file: Any, **kwargs: Any) -> Any:
        if not file.seekable():
            file = io.BytesIO(file.read())
        start = file.tell()
        try:
            return _FastUnpickler(file, **kwargs).load()
        except _ClassFound:
            file.seek(start)
            return _CarefulUnpickler(file, **kwargs).load()

    class Loader(getattr(yaml, 'CFullLoader', yaml.FullLoader)):

        def find_python_name(self, name: str, mark: Any,
                             unsafe: bool = False) -> Any:
            module, _, name = name.rpartition('.')
            try:
                return _Finder(with_classes=True)(module or 'builtins', name)
            except pickle.UnpicklingError as error:
                raise ConstructorError(None, None, str(error), mark) from None

        find_python_module = find_python_name

    for tag in 'object', 'object/apply', 'object/new':
        Loader.add_multi_constructor(
            f'tag:yaml.org,2002:python/{tag}:',
            getattr(FullConstructor,
                    f'construct_python_{tag.replace("/", "_")}'))
    _set(pickle_handler, 'pickle', _Overlay(pickle, load=load))
    _set(yaml_handler, 'Loader', Loader)


@patch('`--resume` runs the text that a checkpoint has for its config',
       until='mmengine no longer parses it')
def leave_config_of_checkpoint() -> None:
    """Read ``gpu_ids``, all that ``Runner.resume`` wants, without running it.
    """
    import mmengine
    from mmengine.runner import runner

    def read_gpu_ids(text: str, file_format: str) -> dict:
        for node in ast.parse(text).body:
            if isinstance(node, ast.Assign) and any(
                    getattr(target, 'id', None) == 'gpu_ids'
                    for target in node.targets):
                try:
                    return dict(gpu_ids=ast.literal_eval(node.value))
                except ValueError:
                    pass
        return {}

    _set(runner, 'mmengine', _Overlay(mmengine, Config=_Overlay(
        mmengine.Config, fromstring=read_gpu_ids)))


@patch('`RuntimeError` without a word from a config in the new style that has '
       '`import os.path as osp`, on Python 3.11 and later, or `from functools '
       'import partial`, in a virtual environment',
       until='mmengine goes by `sys.stdlib_module_names`')
def know_frozen_modules() -> str | None:
    """Take the modules of the standard library for built-in ones.

    mmengine asks where the file of a module lies. Frozen modules have none,
    and in a virtual environment the others lie elsewhere.
    """
    from mmengine.config import config, utils
    if all(map(utils._is_builtin_module, ('os', 'functools'))):
        return 'they are known'

    def is_builtin(original, module_name):
        return (module_name.partition('.')[0] in sys.stdlib_module_names
                or original(module_name))

    for module in config, utils:
        _wrap(module, '_is_builtin_module', is_builtin)
    return None


@patch('`np.Inf was removed in the NumPy 2.0 release`, and its like',
       until='mmaction2 supports numpy 2')
def run_on_numpy_2() -> str | None:
    """Give the modules that need them the names that numpy dropped.

    Pose transforms, frame extraction and the metrics of ActivityNet, AVA and
    retrieval use such names; MultiSports' metric makes an int of an array of
    one element. numpy itself is left alone.
    """
    import numpy as np
    from mmaction.evaluation.functional import multisports_utils

    names = dict(
        Inf=np.inf,
        NAN=np.nan,
        trapz=getattr(np, 'trapezoid', None),
        in1d=lambda *args, **kwargs: np.isin(*args, **kwargs).ravel())
    names = {name: value for name, value in names.items()
             if not hasattr(np, name)}
    if not names:
        return f'numpy {np.__version__} has them'
    for name in ('datasets.transforms.pose_transforms',
                 'evaluation.functional.accuracy',
                 'evaluation.functional.ava_evaluation.metrics',
                 'evaluation.metrics.multimodal_metric', 'utils.misc'):
        module = importlib.import_module(f'mmaction.{name}')
        _set(module, 'np', _Overlay(np, **names))
    _set(multisports_utils, 'int', lambda value: int(np.asarray(value).item()))
    return None


@patch('`OverflowError` in half of the calls of `ColorJitter`',
       until='mmaction2 and mmcv support numpy 2')
def shift_hue_in_range() -> str | None:
    """Shift hues in 16 bits.

    ``ColorJitter.adjust_hue`` adds a negative int to uint8 pixels, and
    ``mmcv.adjust_hue`` casts one to uint8; numpy 2 refuses both. (A positive
    one overflows in the former, silently.)
    """
    import cv2
    import mmcv
    import numpy as np
    from mmaction.datasets.transforms import ColorJitter
    if int(np.__version__.split('.')[0]) < 2:
        return f'numpy {np.__version__} does not refuse'

    def jitter_hue(img: np.ndarray, factor: float) -> np.ndarray:
        img = np.clip(img, 0, 255).astype(np.uint8)
        hsv = cv2.cvtColor(img, cv2.COLOR_RGB2HSV)
        hue = hsv[..., 0].astype(np.int16) + int(factor * 255)
        hsv[..., 0] = hue % 180
        return cv2.cvtColor(hsv, cv2.COLOR_HSV2RGB).astype(np.float32)

    class CyclicFactor(float):

        def __mul__(self, scale):
            return int(float(self) * scale) % 256

    def adjust_hue(original, img, hue_factor, backend=None):
        return original(img, CyclicFactor(hue_factor), backend)

    _set(ColorJitter, 'adjust_hue', staticmethod(jitter_hue))
    for module in mmcv, mmcv.image, mmcv.image.photometric:
        _wrap(module, 'adjust_hue', adjust_hue)
    return None


@patch('`AmpOptimizerWrapper is only available training on gpu`',
       until="mmengine's `AmpOptimWrapper` runs on a CPU")
def train_amp_on_cpu() -> None:
    """Without an accelerator, let ``--amp`` mean bfloat16, without scaling.

    The checkpoint of such a run has an empty scaler, which a run on a GPU
    ignores.
    """
    import torch
    from mmengine.optim import AmpOptimWrapper, OptimWrapper

    def init(original, self, loss_scale='dynamic', dtype=None, use_fsdp=False,
             **kwargs):
        if not _on_cpu():
            return original(self, loss_scale, dtype, use_fsdp, **kwargs)
        if dtype not in (None, 'bfloat16', torch.bfloat16):
            raise ValueError('AmpOptimWrapper on a CPU computes in bfloat16: '
                             f"dtype must be None or 'bfloat16', got {dtype}")
        OptimWrapper.__init__(self, **kwargs)
        self._scale_update_param = None
        self.loss_scaler = torch.amp.GradScaler('cpu', enabled=False)
        self.cast_dtype = torch.bfloat16

    def load_state_dict(original, self, state_dict):
        if not state_dict.get('loss_scaler'):
            state_dict = {
                key: value
                for key, value in state_dict.items() if key != 'loss_scaler'
            }
        return original(self, state_dict)

    _wrap(AmpOptimWrapper, '__init__', init)
    _wrap(AmpOptimWrapper, 'load_state_dict', load_state_dict)


@patch('`Got unsupported ScalarType BFloat16` under bfloat16 autocast',
       until='mmaction2 casts where it calls `numpy()`')
def score_in_float32() -> None:
    """Under autocast, make bfloat16 scores of a head float32.

    Heads and metrics turn them into numpy arrays, which know no bfloat16.
    """
    import torch
    from mmaction.models.heads import BaseHead

    def widen(scores: Any) -> Any:
        if isinstance(scores, dict):
            return {key: widen(value) for key, value in scores.items()}
        if (torch.is_tensor(scores) and scores.dtype == torch.bfloat16
                and torch.is_autocast_enabled(scores.device.type)):
            return scores.float()
        return scores

    def call(original, self, *args, **kwargs):
        return widen(original(self, *args, **kwargs))

    _wrap(BaseHead, '__call__', call)


@patch("`module 'torch._C' has no attribute '_cuda_setDevice'` at launch",
       until="mmengine's `init_dist` and `Runner` know the CPU")
def launch_on_cpu() -> None:
    """Without an accelerator, launch with gloo and without a device.

    All launchers of mmengine select a CUDA device, ask for nccl, and hand DDP
    the number of that device.
    """
    import torch
    from mmengine.dist import utils
    from mmengine.model import MMDistributedDataParallel

    def set_device(device: Any) -> None:
        if torch.cuda.is_available():
            torch.cuda.set_device(device)

    def leave() -> None:
        if torch.distributed.is_initialized():
            torch.distributed.destroy_process_group()
            gc.collect()

    def init_dist(original, backend, *args, **kwargs):
        if not _on_cpu():
            return original(backend, *args, **kwargs)
        original('gloo' if backend == 'nccl' else backend, *args, **kwargs)
        atexit.register(leave)

    def init_ddp(original, self, module, *args, **kwargs):
        if all(p.device.type == 'cpu' for p in module.parameters()):
            kwargs['device_ids'] = None
        return original(self, module, *args, **kwargs)

    _set(utils, 'torch', _Overlay(
        torch, cuda=_Overlay(torch.cuda, set_device=set_device)))
    for launcher in 'pytorch', 'mpi', 'slurm':
        _wrap(utils, f'_init_dist_{launcher}', init_dist)
    _wrap(MMDistributedDataParallel, '__init__', init_ddp)


@patch('`max_testing_views is only compatible with batch_size == 1`',
       until='`Recognizer3D` does not ask for it',
       upstream='open-mmlab/mmaction2#1440')
def chunk_views_of_any_batch() -> None:
    """Hand over the views of several videos as those of one.

    The option makes validation fail, whose batches are larger. This changes
    nothing else: a recognizer flattens both axes at once.
    """
    from mmaction.models.recognizers import Recognizer3D

    def extract_feat(original, self, inputs, stage='neck', data_samples=None,
                     test_mode=False):
        if (test_mode and (self.test_cfg or {}).get('max_testing_views')
                and inputs.shape[0] > 1):
            inputs = inputs.flatten(0, 1)[None]
        return original(self, inputs, stage, data_samples, test_mode)

    _wrap(Recognizer3D, 'extract_feat', extract_feat)


@contextmanager
def _importable_augmenters() -> Iterator[None]:
    """Give pytorchvideo and imgaug the names they look for on import."""
    import numpy as np
    old = 'torchvision.transforms.functional_tensor'
    try:
        sys.modules.setdefault(
            old, importlib.import_module(
                'torchvision.transforms._functional_tensor'))
    except Exception:
        # No torchvision, or one that has it under its old name.
        pass
    lacks = not hasattr(np, 'sctypes')
    if lacks:
        np.sctypes = dict(
            float=[np.float16, np.float32, np.float64],
            int=[np.int8, np.int16, np.int32, np.int64],
            uint=[np.uint8, np.uint16, np.uint32, np.uint64])
    try:
        yield
    finally:
        if lacks:
            del np.sctypes


@patch('`Install pytorchvideo to use PytorchVideoTrans`, although it is; '
       '`np.sctypes was removed` from imgaug',
       until='mmaction2 drops the wrappers of these packages',
       upstream='facebookresearch/pytorchvideo#251')
def import_augmenters() -> None:
    """Help the packages behind three transforms to be imported.

    They are abandoned. pytorchvideo gets the module that torchvision renamed,
    imgaug numpy's table of types, for the time of its import. If they still
    cannot be imported, the error tells why, and which transforms of ours take
    their place.
    """
    from mmaction.datasets import transforms

    def init(needed, original, self, *args, **kwargs):
        try:
            with _importable_augmenters():
                importlib.import_module(needed)
        except Exception as error:
            raise ImportError(
                f'{type(self).__name__} cannot import {needed} '
                f'({type(error).__name__}: {error}). Use `RandAugment` or '
                '`AutoAugment` of mmvidattn in its place, which need no other '
                "package, e.g. dict(type='RandAugment')") from error
        original(self, *args, **kwargs)

    for name, needed in (('PytorchVideoWrapper', 'pytorchvideo.transforms'),
                         ('TorchVisionWrapper', 'torchvision.transforms'),
                         ('ImgAug', 'imgaug.augmenters')):
        _wrap(getattr(transforms, name), '__init__',
              functools.partial(init, needed))


def start_worker(worker_id: int, num_workers: int, rank: int, seed: int,
                 disable_subprocess_warning: bool = False,
                 each_epoch: bool = False) -> None:
    """Seed a worker of a data loader, as mmengine does.

    Unpickling this function imports mmvidattn, so that what a worker loads
    with is patched also where processes are not forked.

    Args:
        worker_id: See :func:`mmengine.dataset.worker_init_fn`.
        num_workers: Likewise.
        rank: Likewise.
        seed: Likewise.
        disable_subprocess_warning: Likewise.
        each_epoch: Add torch's own seed of the worker, which is new in each
            epoch and reproducible.
    """
    import torch
    from mmengine.dataset import worker_init_fn
    if each_epoch:
        seed = (seed + torch.initial_seed() - worker_id) % 2**31
    worker_init_fn(
        worker_id, num_workers, rank, seed, disable_subprocess_warning)


@patch('With a seed, each epoch repeats the same augmentations, unless '
       '`persistent_workers=True`; workers that are not forked run unpatched',
       until='mmengine seeds by the epoch')
def reseed_workers_each_epoch() -> None:
    """Seed anew the workers that are started anew for each epoch.

    Their augmentations are other ones than mmengine's, of the same seed;
    those of persistent workers are the same. All workers import mmvidattn.
    """
    from mmengine.dataset import worker_init_fn
    from mmengine.runner import FlexibleRunner, Runner

    def build_dataloader(original, *args, **kwargs):
        loader = original(*args, **kwargs)
        init = loader.worker_init_fn
        if getattr(init, 'func', None) is worker_init_fn:
            loader.worker_init_fn = functools.partial(
                start_worker, **init.keywords,
                each_epoch=not loader.persistent_workers)
        return loader

    for owner in Runner, FlexibleRunner:
        _wrap(owner, 'build_dataloader', build_dataloader)


@patch('`Please run "pip install decord" to install Decord first.` of every '
       'sample, where decord has no wheel: Linux on ARM, macOS',
       until='mmaction2 decodes with a library that has one',
       upstream='dmlc/decord#213 (macOS), #297 (Linux on ARM)')
def explain_missing_decord() -> str | None:
    """Say it once, when a step is built, and how to decode without decord.
    """
    try:
        if importlib.util.find_spec('decord') is not None:
            return 'decord is installed'
    except ValueError:
        # Someone keeps it from being imported.
        pass
    from mmaction.datasets import DecordInit

    def init(original, self, *args, **kwargs):
        raise ImportError(
            f'{type(self).__name__} needs decord, which is not installed: '
            'decode with --cfg-options video_backend=torchcodec (or pyav, or '
            'opencv), or set MMVIDATTN_VIDEO_BACKEND=torchcodec; or, on Linux '
            'or Windows on x86-64, pip install decord')

    _wrap(DecordInit, '__init__', init)
    return None


if __name__ == '__main__':
    # The copy that has been applied, not this one.
    from mmvidattn import compat
    compat.main()
