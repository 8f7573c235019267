# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Check the results of all choices, natively and limited to AVX2."""
import json
import os
import subprocess
import sys

import pytest
import torch

from mmvidattn.ops import dispatch
from mmvidattn.ops.choice import Choice
from mmvidattn.ops.examples import compare, make_examples
from mmvidattn.ops.processor import capability, is_emulated

AVX2 = dict(ATEN_CPU_CAPABILITY='avx2', ONEDNN_MAX_CPU_ISA='AVX2',
            MKL_ENABLE_INSTRUCTIONS='AVX2')
SCRIPT = '''
import json
from ops.test_both_capabilities import results_of_every_choice
print(json.dumps(results_of_every_choice()))
'''


def results_of_every_choice():
    """Compare all examples with the plain code, under every choice."""
    default, runs = dispatch.default_choice(), []
    with dispatch.use_backends(True, False), dispatch.use_choice(
            'cpu', default):
        # A measurement finds the opposite at other shapes.
        chosen = {*dispatch.running_keys()}
        with dispatch.use_backends(True, True):
            opposite = {*dispatch.running_keys()} - chosen
    tuned = Choice(dict.fromkeys(opposite, 2.), 'opposite of the defaults')
    for name in 'plain', 'default', 'tuned', 'all':
        with dispatch.use_backends(name != 'plain', name == 'all'), \
                dispatch.use_choice(
                    'cpu', tuned if name == 'tuned' else default):
            for example in make_examples('cpu'):
                for training in (False, True)[:1 + example.is_trained]:
                    backend, _, error = compare(example, training)
                    runs.append([name, example.op.__name__, training,
                                 backend, error])
    return dict(
        capability=capability(), torch=torch.backends.cpu.get_cpu_capability(),
        emulated=is_emulated(), runs=runs)


def limited_to_avx2():
    """Run the comparison in a process, because libraries read the limits
    when they are loaded."""
    done = subprocess.run(
        [sys.executable, '-c', SCRIPT], capture_output=True, text=True,
        env={**os.environ, **AVX2, 'PYTHONPATH': os.pathsep.join(sys.path)})
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.parametrize('limited', [False, True], ids=['native', 'AVX2'])
def test_every_choice_gives_the_plain_results(limited):
    report = limited_to_avx2() if limited else results_of_every_choice()
    assert report['emulated'] or not limited
    if limited and torch.backends.cpu.get_cpu_capability() == 'AVX512':
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
