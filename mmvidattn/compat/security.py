# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Workarounds for files that run code when loaded."""
import ast
import collections
import datetime
import functools
import importlib
import math
import os
import pathlib
import pickle
import re
import sys
import types
import warnings
from collections.abc import Callable
from typing import Any

from .registry import SKIP, Overlay, changes, replace, workaround, wrap


@functools.cache
def _warn_once(message: str) -> None:
    warnings.warn(message, stacklevel=4)


def _numpy_core() -> types.ModuleType:
    import numpy as np
    name = 'numpy._core' if int(np.__version__.split('.')[0]) > 1 else \
        'numpy.core'
    for part in 'multiarray', 'numeric':
        importlib.import_module(f'{name}.{part}')
    return sys.modules[name]


def _refuse(reason: str) -> None:
    raise pickle.UnpicklingError(f'refused: {reason}')


def _as_text(value: str | bytes) -> str:
    """Decode text that a pickle of Python 2 stored as bytes."""
    return value.decode('latin1') if isinstance(value, bytes) else value


def _plain_dtype(code: str, align: bool = False, copy: bool = True) -> Any:
    """Make a numpy dtype from its code in a pickle, such as ``'f4'``.

    Only numbers, times, text and bytes are allowed, but not fields, subarrays
    or objects. The dtype is always a new object, so that setting its state
    does not change other dtypes. The other arguments of ``numpy.dtype`` have
    no effect.
    """
    import numpy as np
    code = _as_text(code)
    if not re.fullmatch('[biufcmMSUV][0-9]{1,9}', code):
        _refuse(f'dtype {code!r} is not plain numbers, times or text')
    return np.dtype(code, False, True)


def _dtype_state(dtype: Any, state: tuple) -> tuple:
    """Return numpy's own state for a dtype of :func:`_plain_dtype`.

    The state from the pickle may differ from numpy's only in the byte order
    and in the unit of a time.
    """
    import numpy as np
    version, order, *layout = state
    made = dtype.newbyteorder(_as_text(order))
    if made.kind in 'mM':
        # numpy 1 has an empty dictionary where numpy 2 has None.
        metadata, (unit, count, *rest) = layout.pop()
        unit = _as_text(unit)
        if metadata or not (unit.isalpha() and isinstance(count, int)):
            _refuse(f'dtype {dtype} has the state {state!r}')
        name = '' if unit == 'generic' else f'[{count}{unit}]'
        made = np.dtype(f'{made.str[:3]}{name}')
        layout.append((None, (unit.encode(), count, *rest)))
    expected = made.__reduce__()[2]
    plain = [*expected[:8]]
    if made.kind in 'mM':
        plain.append((None, expected[8][1]))
    if [version, _as_text(order), *layout] != plain:
        _refuse(f'dtype {dtype} has the state {state!r}')
    return expected


def _array_state(array: Any, state: tuple) -> tuple:
    """Return the state of an array from a pickle, if its sizes agree.

    The array must be empty: numpy frees the memory of an array whose state is
    set, even if a tensor still uses it.
    """
    import numpy as np
    _, shape, dtype, is_fortran, data = state
    if (array.size or not isinstance(dtype, np.dtype)
            or not isinstance(data, (bytes, str))
            or not all(type(n) is int and n >= 0 for n in shape)
            or math.prod(shape) * dtype.itemsize != len(data)
            or math.prod(shape) > len(data)):
        _refuse(f'an array has shape {shape}, dtype {dtype} and other data')
    return 1, shape, dtype, bool(is_fortran), data


def _plain_scalar(dtype: Any, data: bytes | str) -> Any:
    """Make a numpy scalar from a plain dtype and its bytes."""
    import numpy as np
    data = data.encode('latin1') if isinstance(data, str) else data
    if (not isinstance(dtype, np.dtype) or not isinstance(data, bytes)
            or len(data) != dtype.itemsize):
        _refuse(f'a scalar has dtype {dtype} and other data')
    return _numpy_core().multiarray.scalar(dtype, data)


@workaround(
    '`Unsupported global: GLOBAL mmengine.logging...HistoryBuffer` on '
    'resume',
    until="mmengine's checkpoints are plain types",
    upstream='open-mmlab/mmengine#1655, #1650',
    after=('torch', ))
def load_own_checkpoints() -> None:
    """Let ``torch.load(weights_only=True)`` read mmengine's checkpoints.

    The types that are allowed in addition to torch's are the message hub,
    numpy numbers, and numpy arrays of numbers, times or text, from numpy 1 and
    2. ``getattr`` is allowed only on HistoryBuffer, whose statistics are
    stored in this way.

    torch calls ``__setstate__`` of an object, and numpy's implementation can
    corrupt memory. Arrays and dtypes are therefore loaded as classes that
    check the state first. They are saved as numpy's types.
    """
    import numpy as np
    import torch

    # Do not import from mmengine.logging, which may be importing torch.
    from mmengine.logging.history_buffer import HistoryBuffer

    # The unpickler of every torch reads these two attributes.
    def name_as(value: Any, module: str, name: str) -> Any:
        value.__module__ = module
        value.__name__ = value.__qualname__ = name
        return value

    def get_statistic(obj: Any, name: str) -> Any:
        if obj is not HistoryBuffer or name.startswith('_'):
            raise pickle.UnpicklingError(
                f'refused to load getattr({obj!r}, {name!r}) from a '
                'checkpoint: only the statistics of HistoryBuffer are allowed')
        return getattr(obj, name)

    class Dtype:
        """Dtype that numpy accepts by its attribute ``dtype``."""

        def __init__(self, *args: Any) -> None:
            self.dtype = _plain_dtype(*args)

        def __setstate__(self, state: tuple) -> None:
            self.dtype.__setstate__(_dtype_state(self.dtype, state))

        def __reduce__(self) -> tuple:
            return self.dtype.__reduce__()

    class Array(np.ndarray):
        """Array whose results are plain arrays and numbers."""
        __array_priority__ = -1

        def __new__(cls) -> 'Array':
            return super().__new__(cls, 0, 'i1')

        def __setstate__(self, state: tuple) -> None:
            version, shape, dtype, *data = state
            state = version, shape, getattr(dtype, 'dtype', None), *data
            super().__setstate__(_array_state(self, state))

        def __reduce__(self) -> tuple:
            return self.view(np.ndarray).__reduce__()

        def __array_wrap__(self, array: np.ndarray, *args: Any) -> Any:
            return array.view(np.ndarray)[()]

    allowed = [HistoryBuffer, name_as(Dtype, 'numpy', 'dtype'),
               name_as(Array, 'numpy', 'ndarray'),
               name_as(get_statistic, 'builtins', 'getattr')]
    for module in 'numpy.core.multiarray', 'numpy._core.multiarray':
        allowed += [
            name_as(lambda *args: Array(), module, '_reconstruct'),
            name_as(lambda dtype, data: _plain_scalar(dtype.dtype, data),
                    module, 'scalar')]
    torch.serialization.add_safe_globals(allowed)
    changes.append('torch.serialization.get_safe_globals()')


@workaround(
    'A checkpoint from the web runs code when it is loaded; with torch '
    'below 2.6, so does one on the disk',
    until='mmengine passes `weights_only` to torch',
    after=('mmengine.runner', ))
def load_weights_only() -> None:
    """Load checkpoints with ``weights_only=True`` by default.

    By default, ``torch.hub`` and torch below 2.6 unpickle without checks. An
    explicit ``weights_only=False`` and ``TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD=1``
    still work, with one warning.
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

    wrap(checkpoint, 'load_url', load)
    if digit_version(torch.__version__) < digit_version('2.6'):
        replace(checkpoint, 'torch', Overlay(
            torch, load=functools.partial(load, torch.load)))


@functools.cache
def _harmless_names() -> dict[str, Any]:
    """Return the allowed globals of a pickle by name."""
    import numpy as np
    import torch
    from mmaction.structures import ActionDataSample
    from mmengine.config import Config, ConfigDict
    from mmengine.structures import (
        BaseDataElement,
        InstanceData,
        LabelData,
        PixelData,
    )
    from torch._utils import _rebuild_parameter, _rebuild_tensor_v2

    def load_storage(data: bytes) -> Any:
        from mmvidattn.utils.safe_load import safe_load
        if not isinstance(data, bytes):
            # torch.load would read a file if it got a path or a number.
            _refuse(f'a storage must be bytes, got {type(data).__name__}')
        return safe_load(data)

    def rebuild_tensor(storage: Any, offset: int, size: tuple, stride: tuple,
                       *args: Any) -> torch.Tensor:
        # Multiplying an integer by a tuple would give a tuple of any size.
        if not all(isinstance(n, int) for n in (offset, *size, *stride)):
            _refuse('the size of a tensor is not of integers')
        # torch would enlarge a storage that is too small for the tensor, so
        # a small file could allocate any amount of memory.
        last = offset + sum((n - 1) * step for n, step in zip(size, stride))
        if 0 not in size and (last + 1) * storage.dtype.itemsize > (
                storage._untyped_storage.nbytes()):
            _refuse(f'a tensor of size {size} exceeds its storage')
        return _rebuild_tensor_v2(storage, offset, size, stride, *args)

    def encode(text: str, encoding: str) -> bytes:
        # Protocol 2 stores bytes this way.
        return text.encode('latin1')

    def new_array(*args: Any) -> np.ndarray:
        return np.ndarray(0, 'i1')

    def from_buffer(data: bytes | bytearray, dtype: np.dtype,
                    *args: Any) -> np.ndarray:
        if not (isinstance(data, (bytes, bytearray))
                and isinstance(dtype, np.dtype)):
            _refuse(f'an array has dtype {dtype} and no bytes')
        return _numpy_core().numeric._frombuffer(data, dtype, *args)

    # Protocol 2, mmengine's default, uses the names of Python 2.
    names = {f'{module}.{t.__name__}': t
             for module in ('builtins', '__builtin__') for t in (
                 set, frozenset, complex, bytearray, range, slice, list, dict,
                 tuple, str, int, float, bool, bytes)}
    names['__builtin__.xrange'] = range
    names |= {f'{t.__module__}.{t.__name__}': t for t in (
        collections.Counter, collections.OrderedDict, collections.defaultdict,
        collections.deque, datetime.date, datetime.datetime, datetime.time,
        datetime.timedelta, datetime.timezone, Config, ConfigDict,
        BaseDataElement, InstanceData, LabelData, PixelData,
        ActionDataSample)}
    # Python 3.13 has the paths in another module.
    names |= {f'{module}.{t.__name__}': t
              for module in ('pathlib', 'pathlib._local') for t in (
                  pathlib.Path, pathlib.PosixPath, pathlib.WindowsPath,
                  pathlib.PurePath, pathlib.PurePosixPath,
                  pathlib.PureWindowsPath)}
    names |= {f'torch.{name}': value for name, value in vars(torch).items()
              if isinstance(value, torch.dtype)}
    names |= {
        '_codecs.encode': encode,
        'numpy.ndarray': np.ndarray,
        'numpy.dtype': _plain_dtype,
        'torch.Size': torch.Size,
        'torch.device': torch.device,
        'torch.storage._load_from_bytes': load_storage,
        'torch._utils._rebuild_tensor_v2': rebuild_tensor,
        'torch._utils._rebuild_parameter': _rebuild_parameter,
    }
    for core in 'numpy.core', 'numpy._core':
        names |= {f'{core}.multiarray._reconstruct': new_array,
                  f'{core}.multiarray.scalar': _plain_scalar,
                  f'{core}.numeric._frombuffer': from_buffer}
    return names


def _find_harmless(module: str, name: str) -> Any:
    path = f'{module}.{name}'
    value = _harmless_names().get(path)
    if value is None:
        _refuse(f'loading it would call {path}, which is not data. '
                f'If you trust the file, set {SKIP}=load_data_as_data')
    return value


def _check_call(function: Callable, args: Any, is_new: bool = False) -> None:
    """Refuse a call that reads a file or needs more memory than its data.

    Args:
        function: A result of :func:`_find_harmless`.
        args: Its arguments.
        is_new: Only ``function.__new__`` is called.
    """
    name = getattr(function, '__name__', '')
    if (name == 'ndarray' or name == 'Config' and not is_new
            or any(isinstance(arg, range) for arg in args)
            or name in ('bytes', 'bytearray')
            and any(hasattr(arg, '__index__') for arg in args)
            or name == 'slice'
            and not all(isinstance(arg, (int, type(None))) for arg in args)):
        _refuse(f'loading it would call {name}'
                f'({", ".join(type(arg).__name__ for arg in args)})')


def _check_state(obj: Any, state: Any) -> Any:
    """Return the checked state of an object from a pickle."""
    import numpy as np
    import torch
    if (isinstance(obj, (type, types.FunctionType, torch.Tensor))
            or '__setstate__' in getattr(obj, '__dict__', ())):
        _refuse(f'loading it would change {type(obj).__name__} {obj}')
    if isinstance(obj, np.dtype):
        return _dtype_state(obj, state)
    if isinstance(obj, np.ndarray):
        return _array_state(obj, state)
    return state


class _DataUnpickler(pickle._Unpickler):
    """Unpickler of data that checks each call and each state.

    Python's unpickler in C cannot check the instructions in between, and
    reserves memory for any index of a memo.
    """
    # Python deletes nested deques and hashes nested tuples by recursion in C,
    # and crashes at about 30,000 levels.
    LINKS = collections.deque, collections.defaultdict
    MAX_NESTING, MAX_LINKS = 1000, 10_000

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._links = []
        # Depth of each nested tuple, by id. The tuple is stored to keep the id
        # valid.
        self._tuples = {}

    def find_class(self, module: str, name: str) -> Any:
        return _find_harmless(module, name)

    def load(self) -> Any:
        try:
            value = super().load()
            self._check_links()
            return value
        except Exception as error:
            for link in self._links:
                link.clear()
            if isinstance(error, (pickle.UnpicklingError, OSError)):
                raise
            # A damaged pickle can raise any error.
            raise pickle.UnpicklingError(
                'the pickle is damaged, or not of data: '
                f'{type(error).__name__}: {error}') from error

    def _check_links(self) -> None:
        nested = sum(type(inner) in self.LINKS for link in self._links
                     for inner in (link.values() if isinstance(link, dict)
                                   else link))
        if nested > self.MAX_LINKS:
            _refuse(f'it has {nested} nested deques and defaultdicts, of at '
                    f'most {self.MAX_LINKS}')

    def _call(self, is_new: bool) -> None:
        _check_call(*self.stack[-2:], is_new)
        (super().load_newobj if is_new else super().load_reduce)()
        if type(self.stack[-1]) in self.LINKS:
            self._links.append(self.stack[-1])

    def load_reduce(self) -> None:
        self._call(is_new=False)

    def load_newobj(self) -> None:
        self._call(is_new=True)

    def load_build(self) -> None:
        self.stack[-1] = _check_state(*self.stack[-2:])
        super().load_build()

    def load_bytearray8(self) -> None:
        # Python itself would first reserve memory for the given length.
        length = int.from_bytes(self.read(8), 'little')
        self.append(bytearray(self.read(length)))

    def load_instance(self) -> None:
        _refuse('it has an instance of a class of Python 2')

    def _check_tuple(self) -> None:
        made = self.stack[-1]
        inner = [self._tuples.get(id(item), (1, ))[0] for item in made
                 if type(item) is tuple]
        if inner:
            self._tuples[id(made)] = depth, _ = 1 + max(inner), made
            if depth > self.MAX_NESTING:
                _refuse(f'it is nested more than {self.MAX_NESTING} deep')

    dispatch = {
        **pickle._Unpickler.dispatch,
        pickle.REDUCE[0]: load_reduce,
        pickle.NEWOBJ[0]: load_newobj,
        pickle.BUILD[0]: load_build,
        pickle.BYTEARRAY8[0]: load_bytearray8,
        **dict.fromkeys((pickle.INST[0], pickle.OBJ[0],
                         pickle.NEWOBJ_EX[0]), load_instance)}
    for _code in pickle.TUPLE, pickle.TUPLE1, pickle.TUPLE2, pickle.TUPLE3:

        def load_tuple(self, _load: Callable = dispatch[_code[0]]) -> None:
            _load(self)
            self._check_tuple()

        dispatch[_code[0]] = load_tuple


@workaround(
    'A pickle or a YAML file of annotations runs code when '
    '`mmengine.load` reads it',
    until='mmengine loads data only',
    after=('mmengine.fileio', ))
def load_data_as_data() -> None:
    """Let ``mmengine.load`` read data, but not code, from pickles and YAML.

    Data are plain types, the containers, dates and paths of Python's library,
    numpy's arrays of numbers, times and text, torch's tensors, and mmengine's
    and mmaction2's configs and samples. A YAML file may have the tags that
    PyYAML writes for these types. Files that would crash Python, or that need
    more memory than their data, are refused.
    """
    import yaml
    from mmengine.fileio.handlers import pickle_handler, yaml_handler
    from yaml.constructor import ConstructorError, FullConstructor

    def load(file: Any, **kwargs: Any) -> Any:
        return _DataUnpickler(file, **kwargs).load()

    class Loader(getattr(yaml, 'CFullLoader', yaml.FullLoader)):
        depth = 0

        def get_single_data(self) -> Any:
            try:
                return super().get_single_data()
            except yaml.YAMLError:
                raise
            except Exception as error:
                # PyYAML does not wrap errors of calls and numbers.
                raise ConstructorError(
                    None, None, f'{type(error).__name__}: {error}', None
                    ) from error

        def descend_resolver(self, parent: Any, index: Any) -> None:
            # libyaml recurses in C, without a limit.
            self.depth += 1
            if self.depth > _DataUnpickler.MAX_NESTING:
                raise RecursionError(f'nested {self.depth} deep')
            super().descend_resolver(parent, index)

        def ascend_resolver(self) -> None:
            self.depth -= 1
            super().ascend_resolver()

        def flatten_mapping(self, node: Any) -> None:
            # Drop repeats: merging a merge of merges is exponential.
            super().flatten_mapping(node)
            node.value = [*{id(pair[0]): pair for pair in reversed(
                node.value)}.values()][::-1]

        def find_python_name(self, name: str, mark: Any,
                             unsafe: bool = False) -> Any:
            module, _, name = name.rpartition('.')
            return _find_harmless(module or 'builtins', name)

        find_python_module = find_python_name

        def make_python_instance(self, suffix: str, node: Any,
                                 args: Any = None, kwds: Any = None,
                                 newobj: bool = False,
                                 unsafe: bool = False) -> Any:
            _check_call(self.find_python_name(suffix, node.start_mark),
                        [*(args or ()), *(kwds or {}).values()], newobj)
            return super().make_python_instance(suffix, node, args, kwds,
                                                newobj, unsafe)

        def set_python_instance_state(self, instance: Any, state: Any,
                                      unsafe: bool = False) -> None:
            super().set_python_instance_state(
                instance, _check_state(instance, state), unsafe)

    for tag in 'object', 'object/apply', 'object/new':
        Loader.add_multi_constructor(
            f'tag:yaml.org,2002:python/{tag}:',
            getattr(FullConstructor,
                    f'construct_python_{tag.replace("/", "_")}'))
    replace(pickle_handler, 'pickle', Overlay(pickle, load=load))
    replace(yaml_handler, 'Loader', Loader)


@workaround(
    '`--resume` runs the config text in a checkpoint',
    until='mmengine stops parsing it',
    after=('mmengine.runner', ))
def leave_config_of_checkpoint() -> None:
    """Read ``gpu_ids``, which ``Runner.resume`` needs, without running it."""
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

    replace(runner, 'mmengine', Overlay(mmengine, Config=Overlay(
        mmengine.Config, fromstring=read_gpu_ids)))
