# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
import pytest
from helpers import only_backends

from mmvidattn.ops import dispatch
from mmvidattn.ops.examples import compare, make_examples


def test_every_op_with_backends_has_an_example():
    assert sorted(example.op.__name__ for example in make_examples('cpu')) == \
        sorted(name for name, result in dispatch._backends.items() if result)
    assert all(x.numel() for example in make_examples('cpu')
               for x in example.tensors)


@pytest.mark.parametrize('op, name, training', [
    ('depthwise_conv', 'frame by frame', True),
    ('patch_conv', 'product', True)])
def test_backend_supports_its_example(op, name, training):
    """Disable backends, so that results do not depend on the processor."""
    backend, = (x for x in dispatch._backends[op] if x.name == name)
    example, = (x for x in make_examples('cpu') if x.op.__name__ == op)
    with only_backends(op, backend):
        chosen, reasons, error = compare(example, training)
    assert (chosen, reasons) == (name, {})
    assert error < 1e-5


def test_backends_that_are_turned_off_are_explained():
    example, = (x for x in make_examples('cpu')
                if x.op.__name__ == 'linear')
    with dispatch.use_backends(False):
        chosen, reasons, error = compare(example, False)
    assert chosen is None
    assert {*reasons.values()} == {'backends are turned off'}
    assert 0 < error < 1e-5


def test_in_place_writes_are_compared():
    lazy = dispatch.Backend(
        'lazy', lambda *args: None, lambda *args: None, '')
    example, = (x for x in make_examples('cpu')
                if x.op.__name__ == 'push_row')
    with only_backends('push_row', lazy):
        assert compare(example, False)[2] > 0.1
