# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Check the results of all choices, natively and limited to AVX2."""
import json
import os
import subprocess
import sys

import pytest
import torch

AVX2 = dict(ATEN_CPU_CAPABILITY='avx2', ONEDNN_MAX_CPU_ISA='AVX2',
            MKL_ENABLE_INSTRUCTIONS='AVX2')
SCRIPT = '''
import json
import torch
from mmvidattn.ops import dispatch
from mmvidattn.ops.choice import Choice
from mmvidattn.ops.examples import compare, make_examples
from mmvidattn.ops.processor import capability, is_emulated

found = []
for name in 'plain', 'default', 'tuned', 'all':
    torch.compiler.reset()
    with dispatch.use_backends(name != 'plain', name == 'all'):
        # What a measurement finds at other shapes: the opposite.
        keys = dispatch.running_keys()
        with dispatch.use_backends(True, True):
            opposite = {*dispatch.running_keys()} - {*keys}
        choice = dispatch.default_choice() if name != 'tuned' else Choice(
            dict.fromkeys(opposite, 2.), 'the opposite of the defaults')
        with dispatch.use_choice('cpu', choice):
            for example in make_examples('cpu'):
                for training in (False, True)[:1 + example.is_trained]:
                    chosen, _, error = compare(example, training)
                    found.append([name, example.op.__name__, training,
                                  chosen, error])
print(json.dumps(dict(
    capability=capability(), torch=torch.backends.cpu.get_cpu_capability(),
    emulated=is_emulated(), runs=found)))
'''


def run(**env):
    env = {name: value for name, value in os.environ.items()
           if name not in AVX2 and name != 'MMVIDATTN_DISPATCH'} | env
    done = subprocess.run(
        [sys.executable, '-c', SCRIPT], capture_output=True, text=True,
        env=dict(env, MMVIDATTN_DISPATCH='default', OMP_NUM_THREADS='1'))
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.parametrize('limits', [{}, AVX2], ids=['native', 'AVX2'])
def test_every_choice_gives_the_plain_results(limits):
    report = run(**limits)
    assert report['emulated'] == bool(limits)
    if limits and torch.backends.cpu.get_cpu_capability() == 'AVX512':
        assert report['torch'] == 'AVX2'
        assert 'bfloat16' not in report['capability']
    chosen = {name: {(op, training): backend for choice, op, training,
                     backend, _ in report['runs'] if choice == name}
              for name in ('plain', 'default', 'tuned', 'all')}
    assert {*chosen['plain'].values()} == {None}
    assert chosen['all']['depthwise_conv', True] == 'frame by frame'
    assert chosen['all']['patch_conv', True] == 'product'
    # Each backend runs natively or with AVX2.
    for key in ('depthwise_conv', True), ('patch_conv', True):
        assert {chosen['default'][key], chosen['tuned'][key]} == {
            None, chosen['all'][key]}
    for *call, error in report['runs']:
        assert error < 1e-5, call
