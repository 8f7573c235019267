# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Malicious files run no code, and are refused with little work."""
import collections
import cProfile
import functools
import io
import os
import pickle
import struct
import tarfile
import tracemalloc
import zipfile
from pathlib import Path

import mmengine
import numpy as np
import pytest
import torch
import yaml
from fuzzed_files import rezipped
from fuzzed_files import torch_saved as zipped
from mmengine.config import ConfigDict
from mmengine.runner import CheckpointLoader
from safetensors.torch import save

from mmvidattn.datasets import read_video_list
from mmvidattn.datasets.feature_streams import open_array
from mmvidattn.utils import safe_load
from mmvidattn.utils.checkpoint import check_opens, read_checkpoint

WEIGHTS = dict(a=torch.ones(2))


class Call:
    """Call a function when unpickled."""

    def __init__(self, function, *args):
        self.call = function, args

    def __reduce__(self):
        return self.call


def legacy(obj):
    return zipped(obj, is_zip=False)


def chain(made):
    """Pickle getattr and a call, in the form of a HistoryBuffer."""
    return (b'cbuiltins\ngetattr\n(cos\n_wrap_close\nV__init__\ntR'
            b'cos\nmkdir\n(V' + made.encode() + b'\ntR.')


def with_pickle(data, weights=WEIGHTS):
    """Build a file of ``torch.save`` with another pickle."""
    return rezipped(zipped(weights), {'archive/data.pkl': data})


def tar(data):
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode='w') as archive:
        for name in 'sys_info', 'pickle', 'storages', 'tensors':
            info = tarfile.TarInfo(name)
            info.size = len(data)
            archive.addfile(info, io.BytesIO(data))
    return file.getvalue()


def beyond_storage(size, stride):
    return Call(torch._utils._rebuild_tensor_v2, torch.ones(4).storage(), 0,
                size, stride, False, collections.OrderedDict())


def with_size(size, stride=(1, )):
    """Build a tensor whose size differs from the size of its storage."""
    return zipped(dict(a=beyond_storage(size, stride)))


def with_long_storage():
    """Build a tensor and a storage of 8 numbers, with a record of 4."""
    data = zipped(dict(a=torch.ones(4)))
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        code = archive.read('archive/data.pkl')
    assert code.count(b'K\x04') == 2
    return with_pickle(code.replace(b'K\x04', b'K\x08'), dict(
        a=torch.ones(4)))


def script():
    file = io.BytesIO()
    torch.jit.save(torch.jit.script(torch.nn.Linear(1, 1)), file)
    return file.getvalue()


def object_array(made):
    array = np.empty(1, object)
    array[0] = Call(os.mkdir, made)
    return array


def npy(header):
    text = header.encode().ljust(118 - 1) + b'\n'
    return b'\x93NUMPY\x01\0' + struct.pack('<H', len(text)) + text + bytes(64)


def dumped(write, array):
    file = io.BytesIO()
    write(file, array)
    return file.getvalue()


def read_features(path):
    return np.asarray(open_array(path)).sum()


class State:
    """Set attributes of a class or function when unpickled."""

    def __init__(self, owner, **attributes):
        self.owner, self.attributes = owner, attributes

    def dump(self):
        # In protocol 2: the name, (None, attributes), BUILD.
        name = f'c{self.owner.__module__}\n{self.owner.__name__}\n'.encode()
        state = pickle.dumps((None, self.attributes), protocol=2)
        return b'\x80\x02' + name + state[2:-1] + b'b.'


def changed_function(made):
    return State(torch._utils._rebuild_tensor_v2, __defaults__=(1, )).dump()


def changed_class(owner):
    return State(owner, __init__=dict).dump()


CHECKPOINTS = {
    'mkdir': lambda m: zipped(dict(state_dict=Call(os.mkdir, m))),
    'legacy': lambda m: legacy([Call(os.mkdir, m)]),
    'bare pickle': lambda m: pickle.dumps(Call(os.mkdir, m)),
    'partial': lambda m: zipped([Call(functools.partial, os.mkdir, m)]),
    'chain': lambda m: with_pickle(chain(m)),
    'late': lambda m: zipped(dict(state_dict=WEIGHTS, message_hub=dict(
        log_scalars={}, runtime_info=dict(x=Call(os.mkdir, m))))),
    'nested archive': lambda m: zipped([Call(
        torch.storage._load_from_bytes, legacy(Call(os.mkdir, m)))]),
    'nested file': lambda m: zipped([Call(np.load, f'{m}.npy', None, True)]),
    'object array': lambda m: zipped(dict(state_dict=object_array(m))),
    'tar': lambda m: tar(pickle.dumps(Call(os.mkdir, m))),
    'script': lambda m: script(),
    'bomb': lambda m: _bomb(),
    'own class': lambda m: zipped(dict(state_dict=WEIGHTS, args=Path(m))),
}
# Files that run no code, but use too much memory, time or foreign memory.
GREEDY = {
    'stride behind the storage': lambda m: with_size((2, ), (4, )),
    'size behind the storage': lambda m: with_size((5, )),
    'storage behind its record': lambda m: with_long_storage(),
    'size beyond all memory': lambda m: with_size((2**36, )),
    'bomb of tensors': lambda m: rezipped(
        zipped(dict(a=torch.zeros(5 * 10**6))), {}, zipfile.ZIP_DEFLATED),
    'nested marks': lambda m: with_pickle(b'(' * 10**7),
    'nested lists': lambda m: with_pickle(b']' * 10**6 + b'.'),
    'nested lists, legacy': lambda m: b']' * 10**6,
    'nested marks, legacy': lambda m: legacy(WEIGHTS)[:20] + b'(' * 10**7,
}
SAFETENSORS = {
    'pickle as safetensors': lambda m: zipped([Call(os.mkdir, m)]),
    'endless header': lambda m: struct.pack('<Q', 2**62) + b'{}',
    'offsets beyond its end': lambda m: save(WEIGHTS)[:-4],
}
FEATURES = {
    'objects': lambda m: dumped(
        lambda f, a: np.save(f, a, allow_pickle=True), object_array(m)),
    'objects in npz': lambda m: dumped(
        lambda f, a: np.savez(f, a), object_array(m)),
    'pickle as npy': lambda m: pickle.dumps(Call(os.mkdir, m)),
    'code in the header': lambda m: npy(
        f"__import__('os').mkdir({m!r})"),
    'endless shape': lambda m: npy(
        "{'descr': '<f4', 'fortran_order': False, 'shape': (2**40, 4), }"),
    'too large a shape': lambda m: npy(
        "{'descr': '<f4', 'fortran_order': False, "
        "'shape': (99999999999, 4), }"),
}
ANNOTATIONS = {
    'a.pkl': lambda m: pickle.dumps([Call(os.mkdir, m)]),
    'b.pkl': lambda m: pickle.dumps(object_array(m)),
    'c.pkl': lambda m: pickle.dumps(Call(
        torch.storage._load_from_bytes, legacy(Call(os.mkdir, m)))),
    'd.pkl': lambda m: chain(m),
    'a.yml': lambda m: f'!!python/object/apply:os.mkdir ["{m}"]'.encode(),
    'c.yaml': lambda m: b'x: !!python/name:os.system',
    'd.yaml': lambda m: b'x: !!python/module:os',
    'e.yaml': lambda m: b"!!python/object/apply:builtins.eval ['1']",
    # f: a storage of nested marks; g: a tensor larger than its storage.
    'f.pkl': lambda m: pickle.dumps(Call(
        torch.storage._load_from_bytes, b'(' * 10**7)),
    'g.pkl': lambda m: pickle.dumps(beyond_storage((2**20, ), (1, ))),
    # Attempts to change an allowed class.
    'e.pkl': lambda m: changed_class(ConfigDict),
    'h.pkl': lambda m: changed_class(collections.OrderedDict),
}


def _bomb():
    """Compress a pickle of 20 MB of zeros to 20 kB."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, 'w', zipfile.ZIP_DEFLATED) as archive:
        archive.writestr('archive/data.pkl', bytes(2 * 10**7))
        archive.writestr('archive/version', '3\n')
    return file.getvalue()


CASES = [
    *((f'{name} checkpoint', 'x.pth', make, read_checkpoint)
      for name, make in (CHECKPOINTS | GREEDY).items()),
    *((name, 'x.safetensors', make, read_checkpoint)
      for name, make in SAFETENSORS.items()),
    *((f'{name} features', 'x.npy', make, read_features)
      for name, make in FEATURES.items()),
    *((f'{name} annotations', name, make, mmengine.load)
      for name, make in ANNOTATIONS.items()),
    *((f'{name} as a list', name, make, read_video_list)
      for name, make in ANNOTATIONS.items() if name in ('a.pkl', 'a.yml')),
]


@pytest.fixture
def few_instructions(monkeypatch):
    """Allow 1/50 of the instructions of a pickle, to save time."""
    assert safe_load.MAX_INSTRUCTIONS == 10**6
    monkeypatch.setattr(safe_load, 'MAX_INSTRUCTIONS', 20_000)


@pytest.mark.parametrize('file, make, read', [case[1:] for case in CASES],
                         ids=[case[0] for case in CASES])
def test_refuses_with_little_work_and_runs_no_code(
        few_instructions, tmp_path, file, make, read):
    made, path = tmp_path / 'made', tmp_path / file
    path.write_bytes(make(str(made)))
    # 'nested file' tries to load this file.
    np.save(f'{made}.npy', object_array(str(made)), allow_pickle=True)
    with cProfile.Profile() as profile, pytest.raises(Exception) as info:
        read(path if read is not read_video_list else str(path))
    # An instruction takes 26 calls.
    assert sum(entry.callcount for entry in profile.getstats()) < 6 * 10**5
    assert not made.exists()
    # Python itself refuses to change built-in classes, with a TypeError.
    assert isinstance(info.value, (
        ValueError, pickle.UnpicklingError, yaml.YAMLError,
        *([TypeError] if file == 'h.pkl' else [])))
    assert len(str(info.value)) > 10


def test_pickle_cannot_change_functions(tmp_path):
    (tmp_path / 'x.pkl').write_bytes(changed_function(''))
    before = torch._utils._rebuild_tensor_v2.__defaults__
    with pytest.raises(pickle.UnpicklingError, match='rebuild_tensor'):
        mmengine.load(tmp_path / 'x.pkl')
    assert torch._utils._rebuild_tensor_v2.__defaults__ == before


@pytest.mark.parametrize('name', CHECKPOINTS)
def test_mmengine_runs_no_code_either(tmp_path, name):
    """``load_from`` of a config does not use our loader."""
    made, path = tmp_path / 'made', tmp_path / 'x.pth'
    path.write_bytes(CHECKPOINTS[name](str(made)))
    with pytest.raises(Exception):
        CheckpointLoader.load_checkpoint(str(path), 'cpu')
    with pytest.raises(ValueError, match='does not open'):
        check_opens(path)
    assert not made.exists()


@pytest.mark.parametrize('name', GREEDY)
def test_refuses_greedy_file_with_little_memory(few_instructions, tmp_path,
                                                name):
    path = tmp_path / 'x.pth'
    path.write_bytes(GREEDY[name](''))
    tracemalloc.start()
    with pytest.raises(ValueError, match='does not open'):
        check_opens(path)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 8 * path.stat().st_size + 2 * 10**6


def test_malicious_files_work_without_protection(tmp_path):
    made = tmp_path / 'made'
    for name in ('mkdir', 'legacy', 'late', 'object array', 'nested archive'):
        data = CHECKPOINTS[name](str(made))
        torch.load(io.BytesIO(data), weights_only=False)
        made.rmdir()
    pickle.loads(ANNOTATIONS['a.pkl'](str(made)))
    made.rmdir()
