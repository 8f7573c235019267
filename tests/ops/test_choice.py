# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
import json
import os
import warnings

import pytest
import torch

from mmvidattn.ops import choice, defaults, examples, processor  # noqa: F401
from mmvidattn.ops.choice import (
    Choice,
    Condition,
    cache_path,
    default_choice,
    describe_machine,
    key_of,
    read_choice,
)
from mmvidattn.ops.defaults import Machine, Measurement, default_gains
from mmvidattn.ops.dispatch import list_backends

KEY = key_of('linear', 'oneDNN', Condition(False, 'float32', False))
OTHER = key_of('linear', 'oneDNN', Condition(True, 'float32', True))


@pytest.fixture(autouse=True)
def cache(monkeypatch, tmp_path):
    monkeypatch.setenv('XDG_CACHE_HOME', str(tmp_path))
    monkeypatch.setattr(choice, 'default_gains', lambda name: {OTHER: 2.})


def write(**changes):
    stored = dict(machine=describe_machine(), gains={KEY: 1.5},
                  origin='tuned with x')
    stored.update(changes)
    path = cache_path()
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(stored))
    return path


def test_keys_are_readable():
    assert KEY == 'linear/oneDNN/inference/float32/eager'
    assert OTHER == 'linear/oneDNN/training/float32/compiled'


def test_a_backend_runs_from_a_gain_of_a_tenth():
    result = Choice(dict(a=1.09, b=1.1, c=3.), '')
    assert result.chosen == ['b', 'c']
    assert not result.runs('unknown')


def test_without_a_file_the_defaults_apply():
    assert read_choice() == default_choice()
    assert read_choice().chosen == [OTHER]


def test_tuned_gains_replace_defaults():
    write(gains={KEY: 1.5})
    result = read_choice()
    assert result.gains == {KEY: 1.5, OTHER: 2.}
    assert result.origin.startswith('tuned with x, else defaults for ')
    write(gains={OTHER: 0.7})
    assert read_choice().chosen == []


def test_the_file_of_another_machine_or_version_is_not_read(monkeypatch):
    path = write()
    for name in 'processor_name', 'capability':
        with monkeypatch.context() as patch:
            patch.setattr(choice, name, lambda device: 'another')
            assert cache_path() != path
            assert KEY not in read_choice().gains
    for module, name in (choice, '__version__'), (torch, '__version__'):
        with monkeypatch.context() as patch:
            patch.setattr(module, name, '9.9')
            assert cache_path() != path
    assert KEY in read_choice().gains


def test_lies_in_the_users_cache(monkeypatch, tmp_path):
    assert cache_path().parent == tmp_path / 'mmvidattn/backends'
    monkeypatch.delenv('XDG_CACHE_HOME')
    monkeypatch.setenv('HOME', str(tmp_path / 'home'))
    assert cache_path().parent == \
        tmp_path / 'home/.cache/mmvidattn/backends'


DAMAGED = {
    'not JSON': '{"gains": ',
    'not UTF-8': b'\xff\xfe\x00',
    'a list': '[]',
    'nothing': '',
    'deep': '[' * 100_000,
    'no machine': json.dumps(dict(gains={}, origin='')),
    'large': ' ' * (choice.MAX_BYTES + 1),
}
WRONG = {
    'another machine': dict(machine={}),
    'no gains': dict(gains=None),
    'text for a gain': dict(gains={KEY: 'fast'}),
    'a bool for a gain': dict(gains={KEY: True}),
    'not a number': dict(gains={KEY: float('nan')}),
    'an infinite gain': dict(gains={KEY: float('inf')}),
    'a negative gain': dict(gains={KEY: -1.}),
    'a key of other parts': dict(gains={'linear': 2.}),
    'no origin': dict(origin=None),
}


@pytest.mark.parametrize('name', [*DAMAGED, *WRONG])
def test_a_damaged_file_is_ignored_with_a_warning(name):
    path = write(**WRONG.get(name, {}))
    if name in DAMAGED:
        content = DAMAGED[name]
        path.write_bytes(
            content if isinstance(content, bytes) else content.encode())
    with pytest.warns(UserWarning, match='mmvidattn tune'):
        assert read_choice() == default_choice()


def test_an_unreadable_folder_is_ignored(monkeypatch):
    path = cache_path()
    path.parent.mkdir(parents=True)
    os.mkfifo(path)
    assert read_choice() == default_choice()


def test_a_device_without_a_capability_has_no_choice():
    with warnings.catch_warnings():
        warnings.simplefilter('error')
        assert read_choice('meta').origin.startswith('defaults for None')


def test_the_smallest_gain_of_all_machines_counts(monkeypatch):
    machines = [
        Machine('X', 'one', (
            Measurement('a', 'b', 'training', 'float32', 1.5, None), )),
        Machine('X', 'two', (
            Measurement('a', 'b', 'training', 'float32', 0.9, 1.2), )),
        Machine('Y', 'three', (
            Measurement('a', 'b', 'training', 'float32', 3., 3.), ))]
    monkeypatch.setattr(defaults, 'MACHINES', machines)
    assert default_gains('X') == {
        'a/b/training/float32/eager': 0.9,
        'a/b/training/float32/compiled': 1.2}
    assert default_gains('Z') == {} == default_gains(None)


def test_the_table_has_registered_backends_only():
    names = {(op.__name__, backend.name) for op, backend in list_backends()}
    assert defaults.MACHINES
    for machine in defaults.MACHINES:
        for result in machine.measurements:
            assert (result.op, result.backend) in names
            assert result.mode in ('inference', 'training')
            assert hasattr(torch, result.dtype)
            assert all(gain is None or 0 < gain < 100
                       for gain in result[-2:])


def test_every_cpu_backend_earns_its_place():
    """Check that each backend is 1.25 times as fast on some machine."""
    best = {}
    for machine in defaults.MACHINES:
        for result in machine.measurements:
            for gain in filter(None, result[-2:]):
                key = result.op, result.backend
                best[key] = max(gain, best.get(key, 0))
    # No GPU was measured yet: Triton kernels run on request or once tuned.
    assert {key for key, gain in best.items() if gain >= 1.25} == {
        (op.__name__, backend.name) for op, backend in list_backends()
        if backend.name != 'Triton'}


def test_no_backend_of_a_gpu_runs_by_default():
    assert not any(machine.capability.startswith('CUDA')
                   for machine in defaults.MACHINES)


CPUINFO = ('processor\t: 0\nvendor_id\t: {}\ncpu family\t: 25\n'
           'model\t\t: 33\nmodel name\t: Some CPU\n')


@pytest.mark.parametrize('vendor, torch_name, bfloat16, expected', [
    ('AuthenticAMD', 'AVX2', False, 'AMD AVX2'),
    ('AuthenticAMD', 'AVX512', True, 'AMD AVX512 bfloat16'),
    ('GenuineIntel', 'AVX512', False, 'Intel AVX512')])
def test_capability_of_a_cpu(monkeypatch, tmp_path, vendor, torch_name,
                             bfloat16, expected):
    (tmp_path / 'cpuinfo').write_text(CPUINFO.format(vendor))
    monkeypatch.setattr(processor, 'CPUINFO', tmp_path / 'cpuinfo')
    monkeypatch.setattr(torch.backends.cpu, 'get_cpu_capability',
                        lambda: torch_name)
    monkeypatch.setattr(processor, 'has_bfloat16_units', lambda: bfloat16)
    assert processor.capability('cpu') == expected
    assert processor.processor_name() == 'Some CPU (family 25 model 33)'


def test_capability_of_another_processor(monkeypatch, tmp_path):
    monkeypatch.setattr(processor, 'CPUINFO', tmp_path / 'none')
    monkeypatch.setattr(processor.platform, 'processor', lambda: '')
    monkeypatch.setattr(processor.platform, 'machine', lambda: 'arm64')
    monkeypatch.setattr(torch.backends.cpu, 'get_cpu_capability',
                        lambda: 'DEFAULT')
    monkeypatch.setattr(processor, 'has_bfloat16_units', lambda: False)
    assert processor.capability('cpu') == 'arm64 DEFAULT'
    assert processor.processor_name() == 'arm64'
    assert processor.capability('meta') is None


def test_capability_of_a_gpu(monkeypatch):
    monkeypatch.setattr(torch.cuda, 'get_device_capability',
                        lambda device: (9, 0))
    monkeypatch.setattr(torch.cuda, 'get_device_name',
                        lambda device: 'A GPU')
    assert processor.capability('cuda:1') == 'CUDA 9.0'
    assert processor.processor_name('cuda:1') == 'A GPU'
    assert cache_path('cuda:1').name.startswith('cuda_')


def test_knows_that_instructions_are_limited(monkeypatch):
    for name in processor.LIMITS:
        monkeypatch.delenv(name, raising=False)
    assert not processor.is_emulated()
    monkeypatch.setenv('ATEN_CPU_CAPABILITY', 'avx2')
    assert processor.is_emulated()
