# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
import json
from functools import partial
from types import SimpleNamespace

import pytest
import torch
from helpers import only_backends

import mmvidattn
from mmvidattn.apis import tune as module
from mmvidattn.apis.tune import (
    Call,
    Result,
    check_choice_by_time,
    clear,
    interleave,
    measure,
    record,
    record_model,
    representative_calls,
    select_slowest,
    store,
    table,
    tune,
)
from mmvidattn.cli.tune import main
from mmvidattn.ops import dispatch, linear
from mmvidattn.ops.choice import Choice, Condition, cache_path, read_choice
from mmvidattn.ops.feature_fixation import Gate
from mmvidattn.ops.video_linear_attention import (
    Options,
    video_linear_attention,
)

INFERENCE = Condition(False, 'float32', False)
SPEED = {}


def _plain(x, weight, bias=None):
    return torch.nn.functional.linear(x, weight, bias)


def backend(name, function=_plain, why_not=lambda *args: None):
    return dispatch.Backend(name, function, why_not, '')


@pytest.fixture(autouse=True)
def machine(monkeypatch, tmp_path):
    """Set an empty cache, no defaults, and a clock of 1 s for plain code.

    Compiled code is not generated, because this takes seconds for each call;
    ``test_generated_code_is_measured`` restores torch's compiler.
    """
    monkeypatch.setattr(torch, 'compile', partial(
        torch.compile, backend='aot_eager'))
    monkeypatch.setenv('XDG_CACHE_HOME', str(tmp_path))
    monkeypatch.setattr(dispatch, '_switch', '1')
    monkeypatch.setattr(dispatch, '_enabled', True)
    monkeypatch.setattr(dispatch, '_unmeasured', False)
    monkeypatch.setattr(module, 'interleave',
                        lambda functions, budget: [1., SPEED['now']])
    monkeypatch.setattr(module, 'seconds_of_call', lambda call: call.count)
    monkeypatch.setattr('mmvidattn.ops.choice.default_gains',
                        lambda name: {})
    SPEED['now'] = 0.5
    dispatch.set_choice('cpu', None)
    yield
    dispatch.set_choice('cpu', None)


@pytest.fixture
def tensors():
    return torch.randn(4, 3), torch.randn(5, 3), torch.randn(5)


def recorded(tensors, *backends, training=False):
    with only_backends('linear', *backends):
        leaves = [x.clone().requires_grad_(training) for x in tensors]
        return record(lambda: linear(*leaves))


def test_records_calls_that_a_backend_fits(tensors):
    x, weight, bias = tensors
    few = backend('few', why_not=lambda x, *args, **kwargs: (
        None if len(x) < 5 else 'too many'))

    def run():
        for _ in range(3):
            linear(x, weight, bias)
        linear(x[:2], weight, bias)
        linear(x, weight, bias=None)
        linear(x.repeat(2, 1), weight, bias)
        with torch.autocast('cpu', torch.bfloat16):
            linear(x, weight, bias)

    with only_backends('linear', few):
        calls = record(run)
    assert [(len(call.args[0]), call.count, call.condition.dtype)
            for call in calls] == [
        (4, 3, 'float32'), (2, 1, 'float32'), (4, 1, 'float32'),
        (4, 1, 'bfloat16')]
    assert calls[0].shapes == '4x3 5x3 5'
    assert calls[0].backends == (few, )


def test_recorded_tensors_are_copies_of_the_same_layout(tensors):
    x, weight, bias = tensors
    x = x.t().contiguous().t().requires_grad_()
    with only_backends('linear', backend('one')):
        call, = record(lambda: linear(x, weight, bias))
    copy = call.args[0]
    assert copy.requires_grad and copy.is_leaf
    assert copy.stride() == x.stride() and torch.equal(copy, x)
    assert copy.data_ptr() != x.data_ptr()
    assert call.condition.training


@pytest.mark.parametrize('training, seconds, gain', [
    (False, 0.5, 2.), (True, 2., 0.5)])
def test_measures_each_mode(tensors, training, seconds, gain):
    SPEED['now'] = seconds
    calls = recorded(tensors, backend('new'), training=training)
    result, = measure(calls)
    assert not result.errors
    mode = 'training' if training else 'inference'
    assert result.gains == {
        f'linear/new/{mode}/float32/eager': gain,
        f'linear/new/{mode}/float32/compiled': gain}


@pytest.mark.parametrize('training', [
    False, pytest.param(True, marks=pytest.mark.slow)])
def test_generated_code_is_measured(tensors, monkeypatch, training):
    monkeypatch.setattr(torch, 'compile', torch.compile.func)
    test_measures_each_mode(tensors, training, 0.5, 2.)


def test_measures_calls_whose_input_autocast_has_lowered(tensors):
    x, weight, bias = tensors
    with only_backends('linear', backend('new')), torch.autocast(
            'cpu', torch.bfloat16):
        calls = record(lambda: linear(x.bfloat16(), weight, bias))
    result, = measure(calls, ['eager'])
    assert result.condition.dtype == 'bfloat16' and not result.errors
    assert [*result.gains] == ['linear/new/inference/bfloat16/eager']


WRONG = {
    'a result': lambda x, w, b: _plain(x, w, b) * 1.01,
    'not a number': lambda x, w, b: _plain(x, w, b) * torch.nan,
    'a shape': lambda x, w, b: _plain(x, w, b)[:1],
    'a gradient': lambda x, w, b: _plain(x, w + 0.01 * (w - w.detach()), b),
}


@pytest.mark.parametrize('name', WRONG)
def test_a_backend_that_differs_is_reported_and_never_chosen(
        tensors, monkeypatch, name):
    monkeypatch.setattr(module, 'interleave', pytest.fail)
    calls = recorded(tensors, backend('wrong', WRONG[name]), training=True)
    result, = tune(calls, 'cpu', ['eager'])
    assert '4x3 5x3 5' in result.errors['eager']
    assert {*result.gains.values()} == {0.}
    assert dispatch.current_choice('cpu').chosen == []
    assert 'linear by wrong is not used (eager)' in table(
        [result], dispatch.current_choice('cpu'))


def test_a_backend_that_fails_is_reported(tensors):
    def fail(*args):
        raise RuntimeError('no such kernel\nmore')

    calls = recorded(tensors, backend('broken', fail), backend('fine'))
    broken, fine = measure(calls, ['eager'])
    assert 'RuntimeError: no such kernel' in broken.errors['eager']
    assert 'more' not in broken.errors['eager'] and not fine.errors


def test_backend_that_fails_compiled_may_run_eagerly(tensors):
    def eager_only(*args):
        if torch.compiler.is_compiling():
            raise RuntimeError('not compiled')
        return _plain(*args)

    calls = recorded(tensors, backend('eager', eager_only))
    result, = tune(calls, 'cpu')
    assert [*result.errors] == ['compiled']
    assert dispatch.current_choice('cpu').chosen == [
        'linear/eager/inference/float32/eager']


def test_plain_code_that_does_not_compile_is_reported(tensors, monkeypatch):
    def eager_only(*args):
        if torch.compiler.is_compiling():
            raise RuntimeError('not compiled')
        return _plain(*args)

    calls = recorded(tensors, backend('new'))
    calls = [call._replace(op=SimpleNamespace(
        __name__='linear', plain=eager_only)) for call in calls]
    result, = measure(calls)
    assert result.errors['compiled'].partition(': plain code: ')[1]
    assert [*result.seconds] == ['eager']


def test_measures_calls_with_tensors_in_tuples():
    """The gate stays float32 where autocast has lowered the tokens."""
    plain = video_linear_attention.plain
    qkv = torch.randn(1, 2, 2, 2, 24).bfloat16().requires_grad_()
    weight, bias = (torch.randn(*shape, requires_grad=True)
                    for shape in ((4, 12), (4, )))

    def run():
        for pattern in 'space', 'time':
            video_linear_attention(qkv, Options(
                2, pattern, gate=Gate(weight, bias)))

    def wrong(qkv, options):
        gate = options.gate
        # The result is right, and the gradient of the bias is wrong.
        bias = gate.q_bias + 2 * (gate.q_bias - gate.q_bias.detach())
        return plain(qkv, options._replace(gate=gate._replace(q_bias=bias)))

    def unfit(qkv, options):
        return None

    with only_backends('video_linear_attention',
                       backend('right', plain, unfit),
                       backend('wrong', wrong, unfit)), torch.autocast(
            'cpu', torch.bfloat16):
        calls = record(run)
    assert len(calls) == 2
    assert calls[0].shapes == '1x2x2x2x24 4x12 4'
    assert calls[0].args[1].gate.q_bias.data_ptr() != bias.data_ptr()
    errors = {result.backend: result.errors.get('eager')
              for result in measure(calls, ['eager'])}
    assert errors['right'] is None and 'differs' in errors['wrong']


def test_ops_that_write_are_compared_by_their_writes(monkeypatch):
    monkeypatch.setattr(dispatch, '_backends', {})
    monkeypatch.setattr(dispatch, '_ops', {})

    @dispatch.dispatched
    def add_one(x):
        x += 1

    add = dispatch.Backend('add', lambda x: x.add_(1), lambda x: None, '')
    # Printing the table returns nothing either.
    fine = add._replace(function=lambda x: [add.function(x), None][1])
    lazy = add._replace(name='lazy', function=lambda x: None)
    dispatch._backends['add_one'] += [fine, lazy]
    calls = record(lambda: add_one(torch.zeros(3)))
    assert [bool(result.errors) for result in measure(
        calls, ['eager'])] == [False, True]


def test_selects_the_slowest_calls():
    calls = [Call(linear, (), {}, INFERENCE, i, ()) for i in range(20)]
    result = select_slowest(calls[:3], [1., 90., 9.])
    assert [call.count for call in result] == [1]
    result = select_slowest(calls[:3], [30., 40., 30.])
    assert [call.count for call in result] == [1, 0, 2]
    assert len(select_slowest(calls, [1.] * 20)) == module.MOST_CALLS


def test_repeated_calls_weigh_more(tensors, monkeypatch):
    x, weight, bias = tensors
    times = iter([(1., 2.), (1., 0.1)])
    monkeypatch.setattr(
        module, 'interleave', lambda functions, budget: next(times))

    def run():
        for _ in range(9):
            linear(x, weight, bias)
        linear(x[:2], weight, bias)

    with only_backends('linear', backend('new')):
        calls = record(run)
    monkeypatch.setattr(module, 'SHARE', 1.)
    result, = measure(calls, ['eager'])
    assert result.seconds['eager'] == pytest.approx((10., 18.1))
    assert len(result.shapes) == result.num_shapes == 2


def test_functions_are_timed_in_turns():
    order = []
    medians = interleave([lambda: order.append(0), lambda: order.append(1)],
                         budget=0.)
    # A warm-up of each, then five runs of each, side by side.
    assert order[:2] == [0, 1] and len(order) == 12
    assert all({*order[i:i + 2]} == {0, 1} for i in range(0, 12, 2))
    assert all(seconds >= 0 for seconds in medians)


def test_a_tuned_choice_is_used_by_this_and_later_processes(tensors):
    calls = recorded(tensors, backend('new'))
    results = [*tune(calls, 'cpu')]
    path = store(results, 'cpu', 'my_config')
    assert path == cache_path()
    assert [*path.parent.iterdir()] == [path]
    result = dispatch.current_choice('cpu')
    assert result.chosen == ['linear/new/inference/float32/compiled',
                             'linear/new/inference/float32/eager']
    assert 'my_config' in result.origin and result == read_choice()
    assert json.loads(path.read_text())['threads'] == \
        torch.get_num_threads()
    # A later process reads the choice when an op first needs it.
    dispatch.set_choice('cpu', None)
    assert 'my_config' in dispatch.summary()
    assert 'linear by new' in dispatch.summary()
    assert dispatch.running_keys() == result.chosen


def test_switches_override_a_tuned_choice(tensors, monkeypatch):
    store(tune(recorded(tensors, backend('new')), 'cpu', ['eager']), 'cpu',
          'my_config')
    assert 'my_config' in dispatch.summary()
    assert dispatch.running_keys()
    with dispatch.use_backends(False):
        assert 'MMVIDATTN_DISPATCH=0' in dispatch.summary()
        assert dispatch.running_keys() == []
    monkeypatch.setattr(dispatch, '_switch', 'default')
    dispatch.set_choice('cpu', None)
    assert 'my_config' not in dispatch.summary()


def test_a_second_tune_keeps_unmeasured_results(tensors):
    store(tune(recorded(tensors, backend('a')), 'cpu'), 'cpu', 'first')
    SPEED['now'] = 2.
    store(tune(recorded(tensors, backend('b')), 'cpu'), 'cpu', 'second')
    assert {*read_choice().gains.values()} == {2., 0.5}
    store(tune(recorded(tensors, backend('a')), 'cpu'), 'cpu', 'third')
    assert {*read_choice().gains.values()} == {0.5}


def test_defaults_are_not_stored(tensors, monkeypatch):
    """An update of the defaults would otherwise have no effect."""
    monkeypatch.setattr('mmvidattn.ops.choice.default_gains',
                        lambda name: {'a/b/training/float32/eager': 3.})
    dispatch.set_choice('cpu', None)
    for config in 'first', 'second':
        path = store(tune(recorded(tensors, backend('a')), 'cpu'), 'cpu',
                     config)
    assert 'a/b' not in path.read_text()
    assert 'a/b/training/float32/eager' in read_choice().chosen


def test_clears_stored_choices(tensors):
    path = store(tune(recorded(tensors, backend('a')), 'cpu'), 'cpu', 'x')
    other = path.with_name('cuda_1234.json')
    other.write_text('{}')
    assert clear('cpu') == [path]
    assert clear() == [other]
    assert clear() == []


def test_inner_ops_are_tuned_before_outer_ops(monkeypatch):
    seen = []

    def measured(backend, calls, *args):
        seen.append(calls[0].op.__name__)
        return Result(seen[-1], backend.name, INFERENCE, (), 1, {}, {})

    monkeypatch.setattr(module, '_measure_group', measured)
    calls = representative_calls('cpu')
    assert [*measure(calls[::-1])]
    assert seen.index('linear') < seen.index('packed_linear')
    assert seen.index('linear') < seen.index('patch_conv')


def test_default_shapes_reach_every_cpu_backend():
    results = {(call.op.__name__, x.name)
               for call in representative_calls('cpu') for x in call.backends}
    assert results == {(op.__name__, x.name)
                       for op, x in dispatch.list_backends()
                       if x.name != 'Triton'}


@pytest.mark.parametrize('seconds, runs, is_right', [
    (0.5, True, True), (0.5, False, False), (2., True, False),
    (2., False, True), (0.95, True, True), (0.95, False, True),
    (1.05, True, False), (0.87, False, True)])
def test_a_wrong_choice_is_found(monkeypatch, tensors, seconds, runs,
                                 is_right):
    SPEED['now'] = seconds
    calls = recorded(tensors, backend('new'))
    monkeypatch.setattr(module, 'representative_calls', lambda device: calls)
    dispatch.set_choice('cpu', Choice(
        {'linear/new/inference/float32/eager': 3.} if runs else {}, 'test'))
    (result, text), = check_choice_by_time('cpu')
    assert result == is_right
    assert text.endswith('; runs' if runs else '; does not run')


def test_records_model_in_all_modes():
    model = mmvidattn.get_model('dualformer_tiny_motion')
    calls = record_model(model, torch.randn(1, 1, 3, 8, 64, 64),
                         [torch.float32, torch.bfloat16])
    conditions = {(call.op.__name__, *call.condition[:2]) for call in calls}
    assert ('depthwise_conv', True, 'float32') in conditions
    assert ('depthwise_conv', True, 'bfloat16') in conditions
    assert not any(p.grad is not None for p in model.parameters())


def test_records_streams_of_online_detectors():
    model = mmvidattn.get_model('testra_tiny_synthetic', cfg_options={
        'model.backbone.embed_dims': 512,
        'model.cls_head.in_channels': 512})
    inputs = {name: torch.randn(1, 160, channels)
              for name, channels in model.backbone.in_channels.items()}
    calls = record_model(model, inputs, [torch.float32])
    packed, = {call.condition for call in calls
               if call.op.__name__ == 'packed_linear'}
    assert packed == INFERENCE


def test_command_measures_prints_and_stores(monkeypatch, tensors, capsys):
    calls = recorded(tensors, backend('new'))
    monkeypatch.setattr('mmvidattn.commands.tune.representative_calls',
                        lambda device: calls)
    main(['--device', 'cpu', '--eager', '--dry-run'])
    answer = capsys.readouterr().out
    assert not cache_path().exists()
    assert answer.splitlines()[0].startswith(
        mmvidattn.ops.processor.processor_name())
    row, = (line.split() for line in answer.splitlines()
            if line.startswith('linear'))
    assert row == ['linear', 'new', 'inference', 'float32', '1', 'of', '1',
                   '1000.000', '500.000', '2.00', 'yes', '-', '-', '-', 'no']
    main(['--device', 'cpu', '--eager'])
    assert str(cache_path()) in capsys.readouterr().out
    assert 'default shapes' in read_choice().origin
    main(['--clear'])
    assert str(cache_path()) in capsys.readouterr().out
    assert not cache_path().exists()


@pytest.mark.parametrize('argv, answer', [
    (['--clear', 'linear_ff_ssv2'], 'linear_ff_ssv2'),
    (['--batch-size', '0'], '0'), (['--seconds', '0'], '0')])
def test_command_rejects_options(argv, answer, capsys):
    with pytest.raises(SystemExit):
        main(argv)
    assert answer in capsys.readouterr().err


def test_command_rejects_unknown_configs():
    with pytest.raises(SystemExit, match="'linear_fff_ssv2'"):
        main(['linear_fff_ssv2', '--device', 'cpu'])


def test_command_needs_the_switch_in_its_position():
    with dispatch.use_backends(False), pytest.raises(
            SystemExit, match='MMVIDATTN_DISPATCH'):
        main(['--device', 'cpu'])
