# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Files of a stranger run no code, and are refused with one line."""
import argparse
import io
import os
import pickle
import struct
import zipfile

import numpy as np
import pytest
import torch
from mmengine.runner import CheckpointLoader

from mmvidattn.datasets import read_video_list
from mmvidattn.datasets.annotations.formats import read_annotations
from mmvidattn.datasets.feature_streams import open_array
from mmvidattn.utils.checkpoint import check_opens, read_checkpoint

WEIGHTS = dict(a=torch.ones(2))


class Call:
    """Call a function when unpickled."""

    def __init__(self, function, *args):
        self.call = function, args

    def __reduce__(self):
        return self.call


def saved(value, is_zip=True):
    file = io.BytesIO()
    torch.save(value, file, _use_new_zipfile_serialization=is_zip)
    return file.getvalue()


def with_pickle(data):
    """Build a file of ``torch.save`` with another pickle."""
    file = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(saved(WEIGHTS))) as old, \
            zipfile.ZipFile(file, 'w') as new:
        for name in old.namelist():
            new.writestr(name, data if name.endswith('data.pkl') else
                         old.read(name))
    return file.getvalue()


def chain(made):
    """Pickle getattr and a call, in the form of a HistoryBuffer."""
    return (b'cbuiltins\ngetattr\n(cos\n_wrap_close\nV__init__\ntR'
            b'cos\nmkdir\n(V' + made.encode() + b'\ntR.')


def object_array(made):
    array = np.empty(1, object)
    array[0] = Call(os.mkdir, made)
    return array


def npy(array):
    file = io.BytesIO()
    np.save(file, array, allow_pickle=True)
    return file.getvalue()


def header(text):
    text = text.encode().ljust(118 - 1) + b'\n'
    return b'\x93NUMPY\x01\0' + struct.pack('<H', len(text)) + text + bytes(64)


CHECKPOINTS = {
    'mkdir': lambda m: saved(dict(state_dict=Call(os.mkdir, m))),
    'legacy': lambda m: saved([Call(os.mkdir, m)], False),
    'bare pickle': lambda m: pickle.dumps(Call(os.mkdir, m)),
    'class': lambda m: saved(dict(args=argparse.Namespace(m=m))),
    'chain': lambda m: with_pickle(chain(m)),
    'late': lambda m: saved(dict(state_dict=WEIGHTS, message_hub=dict(
        log_scalars={}, runtime_info=dict(x=Call(os.mkdir, m))))),
    'nested archive': lambda m: saved([Call(
        torch.storage._load_from_bytes, saved(Call(os.mkdir, m), False))]),
    'nested file': lambda m: saved([Call(np.load, f'{m}.npy', None, True)]),
    'object array': lambda m: saved(dict(state_dict=object_array(m))),
}
OTHERS = {
    'objects': ('x.npy', lambda m: npy(object_array(m)), open_array),
    'pickle as npy': (
        'x.npy', lambda m: pickle.dumps(Call(os.mkdir, m)), open_array),
    'code in the header': (
        'x.npy', lambda m: header(f"__import__('os').mkdir({m!r})"),
        open_array),
    'list of videos': (
        'x.pkl', lambda m: pickle.dumps([Call(os.mkdir, m)]),
        read_video_list),
    'annotations': (
        'x.pickle', lambda m: pickle.dumps([Call(os.mkdir, m)]),
        read_annotations),
    'yaml': (
        'x.yml', lambda m: f'!!python/object/apply:os.mkdir ["{m}"]'.encode(),
        read_annotations),
}


def refused(path, made, read):
    np.save(f'{made}.npy', object_array(str(made)), allow_pickle=True)
    with pytest.raises(ValueError) as error:
        read(str(path))
    assert not made.exists()
    assert path.name in str(error.value)
    assert len(str(error.value).splitlines()) == 1
    return str(error.value)


@pytest.mark.parametrize('variable', ['', '1'])
@pytest.mark.parametrize('name', CHECKPOINTS)
def test_checkpoint_runs_no_code(tmp_path, monkeypatch, name, variable):
    made, path = tmp_path / 'made', tmp_path / 'x.pth'
    path.write_bytes(CHECKPOINTS[name](str(made)))
    if variable:
        monkeypatch.setenv('TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD', variable)
        with pytest.raises(ValueError, match='unset TORCH_FORCE_NO'):
            read_checkpoint('open-mmlab://resnet50')
    message = refused(path, made, read_checkpoint)
    assert 'loading it would call' in message or name in (
        'bare pickle', 'chain', 'object array'), message
    refused(path, made, check_opens)
    if variable:
        return
    # `load_from` of a config does not use our loader.
    with pytest.raises(pickle.UnpicklingError):
        CheckpointLoader.load_checkpoint(str(path), 'cpu')
    assert not made.exists()


@pytest.mark.parametrize('name', OTHERS)
def test_other_files_run_no_code(tmp_path, name):
    file, make, read = OTHERS[name]
    made, path = tmp_path / 'made', tmp_path / file
    path.write_bytes(make(str(made)))
    message = refused(path, made, read)
    if path.suffix in ('.pkl', '.pickle'):
        assert 'is a pickle' in message and 'and write' in message


def test_numpy_in_checkpoints_loads(tmp_path):
    """Checkpoints of mmengine and of other programs have these values."""
    values = [np.float64(.5), np.bool_(True), np.arange(6.).reshape(2, 3),
              np.asfortranarray(np.eye(3, 2)), np.array(['ab', 'c']),
              np.array(['2020-01-02'], 'M8[D]')]
    torch.save(dict(state_dict=WEIGHTS, meta=values), tmp_path / 'x.pth')
    for got, value in zip(read_checkpoint(tmp_path / 'x.pth')['meta'],
                          values):
        np.testing.assert_array_equal(got, value)
        assert type(got) is type(value) and got.dtype == value.dtype


def test_malicious_files_work_without_protection(tmp_path):
    made = tmp_path / 'made'
    for name in ('mkdir', 'legacy', 'late', 'object array', 'nested archive'):
        data = CHECKPOINTS[name](str(made))
        torch.load(io.BytesIO(data), weights_only=False)
        made.rmdir()
