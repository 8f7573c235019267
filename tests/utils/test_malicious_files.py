# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Files of a stranger run no code, and are refused with one line."""
import io
import os
import pickle
import struct
from contextlib import suppress

import numpy as np
import pytest
import torch
from compat_symptoms import Payload
from mmengine.runner import CheckpointLoader

from mmvidattn.datasets import read_video_list
from mmvidattn.datasets.annotations.formats import read_annotations
from mmvidattn.datasets.feature_streams import open_array
from mmvidattn.utils.checkpoint import check_opens, read_checkpoint

WEIGHTS = dict(a=torch.ones(2))


def saved(value, is_zip=True):
    file = io.BytesIO()
    torch.save(value, file, _use_new_zipfile_serialization=is_zip)
    return file.getvalue()


def object_array(made):
    array = np.empty(1, object)
    array[0] = Payload(os.mkdir, made)
    return array


def npy(array):
    file = io.BytesIO()
    np.save(file, array, allow_pickle=True)
    return file.getvalue()


def header(text):
    text = text.encode().ljust(118 - 1) + b'\n'
    return b'\x93NUMPY\x01\0' + struct.pack('<H', len(text)) + text + bytes(64)


def pickled(made):
    return pickle.dumps([Payload(os.mkdir, made)])


# Contents of checkpoints, and the word of the error that names the danger.
CHECKPOINTS = {
    'zip': (lambda m: saved(dict(state_dict=Payload(os.mkdir, m))), 'mkdir'),
    'legacy': (lambda m: saved([Payload(os.mkdir, m)], False), 'mkdir'),
    'bare pickle': (pickled, ''),
    'late': (lambda m: saved(dict(state_dict=WEIGHTS, message_hub=dict(
        log_scalars={}, runtime_info=dict(x=Payload(os.mkdir, m))))), 'mkdir'),
    'nested archive': (lambda m: saved([Payload(
        torch.storage._load_from_bytes, saved(Payload(os.mkdir, m), False))]),
        '_load_from_bytes'),
    'object array': (lambda m: saved(dict(state_dict=object_array(m))), '')}
OTHERS = {
    'objects': ('x.npy', lambda m: npy(object_array(m)), open_array),
    'pickle as npy': ('x.npy', pickled, open_array),
    'code in the header': (
        'x.npy', lambda m: header(f"__import__('os').mkdir({m!r})"),
        open_array),
    'list of videos': ('x.pkl', pickled, read_video_list),
    'annotations': ('x.pickle', pickled, read_annotations),
    'yaml': (
        'x.yml', lambda m: f'!!python/object/apply:os.mkdir ["{m}"]'.encode(),
        read_annotations)}


def refused(path, read, *words):
    with pytest.raises(ValueError) as error:
        read(str(path))
    assert not (path.parent / 'made').exists()
    for word in path.name, *words:
        assert word in str(error.value)
    assert len(str(error.value).splitlines()) == 1


@pytest.mark.parametrize('name', CHECKPOINTS)
def test_checkpoint_runs_no_code(tmp_path, monkeypatch, name):
    make, word = CHECKPOINTS[name]
    made, path = tmp_path / 'made', tmp_path / 'x.pth'
    path.write_bytes(make(str(made)))
    refused(path, read_checkpoint, word and 'loading it would call', word)
    refused(path, check_opens)
    # `load_from` of a config does not use our loader.
    with pytest.raises(pickle.UnpicklingError):
        CheckpointLoader.load_checkpoint(str(path), 'cpu')
    monkeypatch.setenv('TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD', '1')
    refused(path, read_checkpoint)
    refused(path, check_opens)
    with pytest.raises(ValueError, match='unset TORCH_FORCE_NO'):
        read_checkpoint('open-mmlab://resnet50')
    # A reader without protection runs the code.
    with suppress(RuntimeError):
        torch.load(path, weights_only=False)
    assert made.exists()


@pytest.mark.parametrize('name', OTHERS)
def test_other_files_run_no_code(tmp_path, name):
    file, make, read = OTHERS[name]
    path = tmp_path / file
    path.write_bytes(make(str(tmp_path / 'made')))
    refused(path, read, *['is a pickle', 'and write'] * (
        path.suffix in ('.pkl', '.pickle')))


def test_numpy_in_checkpoints_loads(tmp_path):
    """Checkpoints of mmengine and of other programs have these values."""
    values = [np.float64(.5), np.bool_(True), np.arange(6.).reshape(2, 3),
              np.asfortranarray(np.eye(3, 2)), np.array(['ab', 'c']),
              np.array(['2020-01-02'], 'M8[D]')]
    torch.save(dict(state_dict=WEIGHTS, meta=values), tmp_path / 'x.pth')
    for got, value in zip(read_checkpoint(tmp_path / 'x.pth')['meta'], values):
        np.testing.assert_array_equal(got, value)
        assert type(got) is type(value) and got.dtype == value.dtype
