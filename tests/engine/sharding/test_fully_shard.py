# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
import itertools
import os
import signal

import pytest
import sharded_runs as runs
import torch
from mmengine.hooks import Hook

from mmvidattn.engine import FullyShard
from mmvidattn.engine.hooks import ShardedEMAHook, find_hook
from mmvidattn.engine.sharding.shards import is_shard, local

SHARDED = dict(type='FullyShard')
slow = pytest.mark.slow
# Largest relative difference in float64, from the order of sums.
EXACT = 1e-10


@pytest.fixture
def float64(monkeypatch):
    """Compute in float64, also values that are float32 by definition."""
    torch.set_default_dtype(torch.float64)
    monkeypatch.setattr(torch.Tensor, 'float', torch.Tensor.double)
    yield
    torch.set_default_dtype(torch.float32)


def compare(folder, names, tolerance=EXACT):
    first, second = (runs.last_checkpoint(folder / name) for name in names)
    assert first.keys() == second.keys()
    for key in 'state_dict', 'optimizer', 'ema_state_dict':
        if key in first:
            assert runs.largest_difference(
                first[key], second[key]) <= tolerance, key


def check_all_ways(folder, number, family='linear_ff', wrapper=SHARDED,
                   tolerance=EXACT, **options):
    """Compare FullyShard with DDP and with one process."""
    runs.launched(number, runs.train_all_ways, folder, family, wrapper,
                  **options)
    compare(folder, ('ddp', 'shared'), tolerance)
    if family not in runs.WITH_BATCH_EFFECTS:
        runs.train(folder / 'one', family, **options)
        compare(folder, ('one', 'shared'), tolerance)


@pytest.mark.parametrize('family', [
    pytest.param(name, marks=() if name == 'linear_ff' else slow)
    for name in runs.FAMILIES])
def test_two_processes_equal_ddp_and_one_process(family, tmp_path):
    check_all_ways(tmp_path, 2, family, tolerance=1e-6)


@slow
@pytest.mark.parametrize('number', [2, 4])
@pytest.mark.parametrize('family', runs.FAMILIES)
def test_float64_equals_ddp_and_one_process(float64, family, number, tmp_path):
    check_all_ways(tmp_path, number, family)


# Options of a training that must not change its result.
OPTIONS = dict(
    accumulation=dict(optim_wrapper=dict(
        type='OptimWrapper', accumulative_counts=3,
        optimizer=dict(type='SGD', lr=0.005, momentum=0.9))),
    clipping=dict(optim_wrapper=dict(
        type='OptimWrapper', clip_grad=dict(max_norm=0.5),
        optimizer=dict(type='SGD', lr=0.1, momentum=0.9))),
    value_clipping=dict(optim_wrapper=dict(
        type='OptimWrapper', clip_grad=dict(type='value', clip_value=0.01),
        optimizer=dict(type='SGD', lr=0.02, momentum=0.9))),
    adamw=dict(optim_wrapper=dict(
        type='OptimWrapper',
        optimizer=dict(type='AdamW', lr=1e-3, eps=1e-4))),
    ema=dict(hooks=[dict(type='EMAHook', momentum=0.1)], validate=True),
    late_ema=dict(hooks=[dict(type='EMAHook', begin_iter=5,
                              update_buffers=True)]),
    layer_decay=dict(optim_wrapper=dict(
        type='OptimWrapper',
        constructor='LearningRateDecayOptimWrapperConstructor',
        paramwise_cfg=dict(decay_rate=0.5),
        optimizer=dict(type='SGD', lr=0.02, momentum=0.9,
                       weight_decay=0.01))))
ALL = dict(
    optim_wrapper=dict(
        OPTIONS['layer_decay']['optim_wrapper'], accumulative_counts=3,
        clip_grad=dict(max_norm=0.5)),
    hooks=[dict(type='EMAHook', momentum=0.1)], validate=True)
WRAPPERS = dict(
    offload=dict(SHARDED, cpu_offload=True),
    checkpointing=dict(SHARDED, activation_checkpointing=True),
    one_unit=dict(SHARDED, units=[]),
    classes=dict(SHARDED, units=['VideoTransformerBlock',
                                 'VideoSelfAttention']))


def lora():
    return runs.model_config(
        'linear_ff', type='FineTunedRecognizer3D', lora=dict(rank=4))


def test_all_options_together_with_lora(float64, tmp_path):
    """Accumulation, clipping, layer decay, EMA and LoRA."""
    check_all_ways(tmp_path, 2, model=lora(), **ALL)


@slow
@pytest.mark.parametrize('number', [2, 4])
@pytest.mark.parametrize('options', OPTIONS.values(), ids=OPTIONS)
def test_options_do_not_change_results(float64, options, number, tmp_path):
    check_all_ways(tmp_path, number, **options)


@slow
@pytest.mark.parametrize('wrapper', WRAPPERS.values(), ids=WRAPPERS)
def test_wrappers_do_not_change_results(float64, wrapper, tmp_path):
    check_all_ways(tmp_path, 2, wrapper=wrapper)


def check_shares(folder, family, num_ranks):
    """Compare what this process stores with the n-th part."""
    runner = runs.build_runner(
        folder, family, SHARDED, 2, num_ranks=num_ranks,
        hooks=[dict(type='EMAHook')])
    grads = {}

    class WatchHook(Hook):

        def after_train_iter(self, runner, *args, **kwargs):
            for name, p in runner.model.named_parameters():
                assert is_shard(p), name

        def before_train(self, runner):
            for p in runner.model.parameters():
                p.register_post_accumulate_grad_hook(
                    lambda p: grads.__setitem__(p, local(p.grad).numel()))

    runner.register_hook(WatchHook())
    runner.train()
    limit = 1 / num_ranks + 0.05
    whole = sum(p.numel() for p in runner.model.parameters())
    part, total = runner.model.count_parameters()
    assert total == whole and part <= limit * whole, (part, whole)
    state = runner.optim_wrapper.optimizer.state_dict()['state']
    stored = dict(
        optimizer=sum(local(x).numel() for one in state.values()
                      for x in one.values() if torch.is_tensor(x)),
        gradients=sum(grads.values()),
        ema=sum(local(p).numel() for p in find_hook(
            runner, ShardedEMAHook).ema_model.parameters()))
    for name, number in stored.items():
        assert number <= limit * whole, (name, number, whole)
        assert number > 0, name


@pytest.mark.parametrize('number, family', [(2, 'linear_ff')] + [
    pytest.param(number, family, marks=slow) for number, family in
    itertools.product((2, 4), runs.FAMILIES)
    if (number, family) != (2, 'linear_ff')])
def test_each_process_stores_its_share(number, family, tmp_path):
    runs.launched(number, check_shares, tmp_path, family)


class KillHook(Hook):
    """Kill the last process after an iteration, during saving or after it."""
    priority = 'VERY_LOW'

    def __init__(self, moment):
        self.name, self.iteration = moment

    def _kill(self, runner, name):
        if (name, runner.iter) == (self.name, self.iteration) and (
                runner.rank == runner.world_size - 1):
            os.kill(os.getpid(), signal.SIGKILL)

    def after_train_iter(self, runner, *args, **kwargs):
        self._kill(runner, 'iteration')

    def before_save_on_all_ranks(self, runner):
        self._kill(runner, 'saving')

    def before_train_iter(self, runner, *args, **kwargs):
        self._kill(runner, 'start')


RESUMED = dict(
    optim_wrapper=dict(
        type='OptimWrapper', accumulative_counts=2,
        clip_grad=dict(max_norm=0.5),
        optimizer=dict(type='AdamW', lr=1e-3)), interval=1)


def train_and_die(folder, moment, num_ranks):
    runs.train(folder, 'linear_ff', SHARDED, 8, num_ranks=num_ranks,
               hooks=[dict(type='EMAHook', momentum=0.1), KillHook(moment)],
               **RESUMED)


def resume(folder, work_dir=None, num_ranks=1):
    name = folder.joinpath('last_checkpoint').read_text()
    wrapper = SHARDED if num_ranks > 1 else None
    runs.train(work_dir or folder, 'linear_ff', wrapper, 8,
               num_ranks=num_ranks, resume=True, load_from=name,
               hooks=[dict(type='EMAHook', momentum=0.1)], **RESUMED)


@pytest.fixture(scope='module')
def undisturbed(tmp_path_factory):
    folder = tmp_path_factory.mktemp('undisturbed')
    runs.launched(2, train_and_die, folder, ('never', 0))
    return runs.last_checkpoint(folder, 8)


def same(a, b, tolerance=0.):
    return all(runs.largest_difference(a[key], b[key]) <= tolerance
               for key in ('state_dict', 'ema_state_dict', 'optimizer'))


@pytest.mark.parametrize('moment', [
    ('iteration', 4),
    *(pytest.param(moment, marks=slow) for moment in itertools.product(
        ('start', 'saving', 'iteration'), (2, 3, 6)))], ids=str)
def test_resumes_bit_equal_after_kill(undisturbed, moment, tmp_path):
    """Also between two accumulated iterations."""
    codes = runs.launch(2, train_and_die, tmp_path, moment)
    assert codes[1] == -signal.SIGKILL and codes[0] != 0
    runs.launched(2, resume, tmp_path)
    assert same(runs.last_checkpoint(tmp_path, 8), undisturbed)


@slow
@pytest.mark.parametrize('number', [1, 4])
def test_resumes_with_another_number_of_processes(undisturbed, number,
                                                  tmp_path):
    codes = runs.launch(2, train_and_die, tmp_path, ('iteration', 5))
    assert codes[1] == -signal.SIGKILL and codes[0] != 0
    if number > 1:
        runs.launched(number, resume, tmp_path)
    else:
        resume(tmp_path)
    assert same(runs.last_checkpoint(tmp_path, 8), undisturbed, 1e-5)


def train_bad_batch(folder, num_ranks):
    """Train with NaN in step 2 of a process; both skip it."""
    runner = runs.build_runner(folder, 'testra', SHARDED, 3,
                               num_ranks=num_ranks)

    class SpoilHook(Hook):

        def before_train_iter(self, runner, batch_idx, data_batch):
            self.before = [local(p).clone() for p in
                           runner.model.parameters()]
            if runner.iter == 1 and runner.rank == 1:
                data_batch['inputs']['rgb'][0][:] = torch.nan

        def after_train_iter(self, runner, *args, **kwargs):
            same = all(torch.equal(a, local(b)) for a, b in zip(
                self.before, runner.model.parameters()))
            assert same == (runner.iter == 1)

    runner.register_hook(SpoilHook())
    runner.train()


@slow
def test_all_processes_skip_a_bad_batch(tmp_path):
    runs.launched(2, train_bad_batch, tmp_path)


def train_in_bfloat16(folder, num_ranks):
    wrapper = dict(SHARDED, mixed_precision=dict(
        param_dtype='bfloat16', reduce_dtype='float32'))
    runner = runs.build_runner(folder, 'linear_ff', wrapper, 4,
                               num_ranks=num_ranks)
    types = {}

    class WatchHook(Hook):

        def before_train(self, runner):
            model = runner.model.module
            for name in 'backbone.blocks.0.mlp', 'cls_head':
                model.get_submodule(name).register_forward_hook(
                    lambda module, args, out, name=name: types.update(
                        {name: out.dtype}))

        def after_train_iter(self, runner, batch_idx, data_batch, outputs):
            assert outputs['loss'].dtype == torch.float32

    runner.register_hook(WatchHook())
    runner.train()
    assert types == {'backbone.blocks.0.mlp': torch.bfloat16,
                     'cls_head': torch.float32}
    assert all(p.dtype == torch.float32 for p in runner.model.parameters())


@slow
def test_mixed_precision_keeps_weights_and_head_in_float32(tmp_path):
    runs.launched(2, train_in_bfloat16, tmp_path)
    runs.train(tmp_path / 'one', 'linear_ff', steps=4)
    low, high = (runs.last_checkpoint(folder, 4)['state_dict']
                 for folder in (tmp_path, tmp_path / 'one'))
    assert 0 < runs.largest_difference(low, high) < 0.01


@slow
def test_amp_equals_ddp(tmp_path):
    runs.launched(
        2, runs.train_all_ways, tmp_path, 'linear_ff', SHARDED,
        optim_wrapper=dict(
            type='AmpOptimWrapper', dtype='bfloat16',
            optimizer=dict(type='SGD', lr=0.02, momentum=0.9)))
    compare(tmp_path, ('ddp', 'shared'), 1e-4)


def start_from(folder, file, num_ranks):
    """Train from weights for 8 classes with 9, then validate."""
    model = runs.model_config('linear_ff')
    model.cls_head.num_classes = 9
    for name, wrapper in (('ddp', None), ('shared', SHARDED)):
        runs.train(folder / name, model=model, wrapper=wrapper, steps=2,
                   num_ranks=num_ranks, load_from=str(file), validate=True,
                   hooks=[dict(type='EMAHook', momentum=0.1)])
    scores = [runs.build_runner(
        folder / 'val', model=model, wrapper=wrapper, validate=True,
        num_ranks=num_ranks, load_from=str(folder / 'ddp/iter_2.pth'),
        hooks=[dict(type='EMAHook')]).val()['norm/scores']
        for wrapper in (None, SHARDED)]
    assert scores[0] == pytest.approx(scores[1]) and scores[0] > 0


@slow
def test_starts_from_weights(tmp_path):
    runs.train(tmp_path / 'one', 'linear_ff', steps=1)
    runs.launched(2, start_from, tmp_path, tmp_path / 'one/iter_1.pth')
    a, b = (torch.load(tmp_path / name / 'iter_2.pth')
            for name in ('ddp', 'shared'))
    assert same(a, b, 1e-6)


def toy():
    return torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.ReLU())


@pytest.mark.parametrize('options, error', [
    (dict(units=['Linaer']), 'Linaer; its modules are Linear, ReLU, Sequent'),
    (dict(units='Linear'), "units must be .*'Linear'"),
    (dict(mixed_precision=dict(param_dtype='int8')), 'types float32, bfloat1'),
    (dict(mixed_precision=dict(param='float16')), 'param_dtype'),
    (dict(activation_checkpointing=True), 'needs a backbone with the option'),
    (dict(cpu_offload=3), 'cpu_offload')], ids=str)
def test_rejects_bad_options(options, error):
    with pytest.raises(ValueError, match=error):
        FullyShard(toy(), **options)


def test_does_not_train_unsharded():
    with pytest.raises(RuntimeError, match="runner_type = 'SafeRunner'"):
        FullyShard(toy()).train_step({}, None)


def test_blocks_are_units():
    from mmaction.registry import MODELS
    model = MODELS.build(runs.model_config('dualformer'))
    names = {type(unit).__name__ for unit in FullyShard(model).find_units()}
    assert names == {'PatchEmbed3d', 'VideoTransformerBlock',
                     'PositionEncodingGenerator'}
    blocks = FullyShard(
        MODELS.build(runs.model_config('vivit'))).find_units()
    assert len(blocks) == 3
    # Blocks of streams are called in parts.
    assert not FullyShard(
        MODELS.build(runs.model_config('testra'))).find_units()
