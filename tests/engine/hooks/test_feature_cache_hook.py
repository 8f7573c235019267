# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
import os
import shutil
from collections import Counter
from types import SimpleNamespace

import pytest
import torch
from mmaction.datasets.transforms import DecordInit
from mmengine.config import Config
from mmengine.hooks import Hook
from mmengine.registry import init_default_scope

from mmvidattn.backbones import ViViT
from mmvidattn.cli.feature_cache import main as feature_cache
from mmvidattn.engine import FeatureCacheHook, SafeRunner
from mmvidattn.utils.feature_cache import VIDEOS, describe_folders

# Two runs in the same second have the same name.
pytestmark = pytest.mark.filterwarnings('ignore:.*instance named of')
NUM_TRAIN, NUM_VAL = 4, 2
BACKBONE = dict(
    type='ViViT', num_frames=4, img_size=32, patch_size=16, tubelet_frames=2,
    model='fact_encoder', embed_dims=24, num_layers=2, num_heads=2,
    num_temporal_layers=1, drop_rate=0.1, drop_path_rate=0.2)
SAMPLE = dict(type='UniformSample', clip_len=4, test_mode=True)


class Counts(Hook):
    """Count, in each epoch, the calls of the frozen part and of the whole
    ViViT, and the opened videos.
    """

    def __init__(self, monkeypatch):
        self.now, self.epochs = Counter(), []
        for cls, name in (
                (ViViT, 'forward_spatial'), (ViViT, 'forward'),
                (DecordInit, 'transform')):
            monkeypatch.setattr(cls, name, self._counting(
                cls.__name__, getattr(cls, name)))

    def _counting(self, name, function):

        def counted(*args):
            self.now[name] += 1
            return function(*args)

        return counted

    def after_train_epoch(self, runner):
        self.epochs.append(self.now)
        self.now = Counter()

    def before_val(self, runner):
        self.now = Counter()

    def after_val(self, runner):
        self.epochs.append(self.now)
        self.now = Counter()


@pytest.fixture
def videos(motion_dir, tmp_path):
    """Copies of some videos, with annotation files."""
    folder = tmp_path / 'videos'
    for name, number in ('train', NUM_TRAIN), ('val', NUM_VAL):
        lines = (motion_dir / f'{name}.txt').read_text().splitlines()[:number]
        for line in lines:
            path = folder / line.split()[0]
            path.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(motion_dir / line.split()[0], path)
        (folder / f'{name}.txt').write_text('\n'.join(lines) + '\n')
    return folder


@pytest.fixture
def run(videos, tmp_path, monkeypatch):
    """Return a function that trains; it returns weights, counts by epoch."""
    # Formatting the dumped config takes most of the time.
    monkeypatch.setattr('mmengine.config.config.FormatCode',
                        lambda text, **kwargs: (text, True))
    init_default_scope('mmaction')
    number = iter(range(99))

    def train(cache=True, epochs=2, sample=SAMPLE, workers=0, backbone={},
              freeze='spatial', name=None, hooks=(), seed=0, val=True,
              preprocessor={}, loader={}, **options):
        pipeline = [
            dict(type='DecordInit'), sample, dict(type='DecordDecode'),
            dict(type='Resize', scale=(32, 32), keep_ratio=False),
            dict(type='FormatShape', input_format='NCTHW'),
            dict(type='PackActionInputs')]
        views = [*pipeline[:1], dict(SAMPLE, num_clips=2), *pipeline[2:]]

        def load(split, steps, **more):
            return dict(
                batch_size=2, num_workers=workers,
                persistent_workers=workers > 0,
                sampler=dict(type='DefaultSampler', shuffle=split == 'train'),
                dataset=dict(
                    type='GuardedVideoDataset', data_root=str(videos),
                    ann_file=f'{split}.txt', pipeline=steps,
                    serialize_data=False, test_mode=split == 'val', **more))

        custom = [*hooks]
        if cache:
            custom.append(dict(type='FeatureCacheHook', **{
                'cache_dir': str(tmp_path / 'features'), **options}))
        name = name or f'run{next(number)}'
        cfg = Config(dict(
            model=dict(
                type='FineTunedRecognizer3D', freeze=freeze,
                backbone={**BACKBONE, **backbone},
                data_preprocessor=dict(
                    type='ActionDataPreprocessor', mean=[127.5] * 3,
                    std=[127.5] * 3, format_shape='NCTHW', **preprocessor),
                cls_head=dict(
                    type='ViViTHead', num_classes=8, in_channels=24)),
            train_dataloader=load('train', pipeline, **loader),
            optim_wrapper=dict(optimizer=dict(type='AdamW', lr=1e-3)),
            train_cfg=dict(by_epoch=True, max_epochs=epochs),
            default_hooks=dict(
                checkpoint=dict(type='SafeCheckpointHook', interval=1)),
            custom_hooks=[dict(type='ExactResumeHook'),
                          dict(type='SkippedVideosHook')],
            randomness=dict(seed=seed), log_level='WARNING',
            default_scope='mmaction', work_dir=str(tmp_path / name),
            resume=(tmp_path / name).exists(), experiment_name=name,
            **(dict(val_dataloader=load('val', views), val_cfg={},
                    val_evaluator=dict(type='AccMetric')) if val else {})))
        cfg.custom_hooks.extend(
            hook for hook in custom if isinstance(hook, dict))
        counts = Counts(monkeypatch)
        runner = SafeRunner.from_cfg(cfg)
        for hook in (counts, *hooks):
            runner.register_hook(hook)
        weights = {key: value.clone()
                   for key, value in runner.train().state_dict().items()}
        monkeypatch.undo()
        monkeypatch.setattr('mmengine.config.config.FormatCode',
                            lambda text, **kwargs: (text, True))
        return weights, counts.epochs

    return train


def log_of(work_dir):
    return ''.join(path.read_text() for path in work_dir.glob('*/*.log'))


def assert_equal(one, two):
    assert one.keys() == two.keys()
    for name, value in one.items():
        assert torch.equal(value, two[name]), name


def test_cached_run_equals_plain_run_and_computes_once(run, tmp_path):
    plain, counts = run(cache=False)
    assert [count['DecordInit'] for count in counts[::2]] == [NUM_TRAIN] * 2
    cold, counts = run()
    # One epoch of training, then validation with two views.
    assert counts[:2] == [
        dict(ViViT=NUM_TRAIN, DecordInit=NUM_TRAIN),
        dict(ViViT=2 * NUM_VAL, DecordInit=NUM_VAL)]
    assert counts[2:] == [{}] * 2
    assert_equal(cold, plain)
    # Workers of a second run share the cache.
    warm, counts = run(workers=2)
    assert counts == [{}] * 4
    assert_equal(warm, plain)
    # Only trainable weights change.
    start, _ = run(epochs=1)
    moved = {name for name in start if not torch.equal(start[name],
                                                       warm[name])}
    assert moved and all(
        name.startswith(('backbone.encoder.temporal', 'cls_head'))
        for name in moved)


def test_linear_probe_of_backbone(run):
    plain, _ = run(cache=False, freeze='backbone')
    cached, counts = run(freeze='backbone')
    assert counts[0]['DecordInit'] == NUM_TRAIN and counts[2:] == [{}] * 2
    for name, value in plain.items():
        # The cached run computes single clips, the plain run batches.
        torch.testing.assert_close(cached[name], value, atol=1e-6, rtol=0)


def test_resumed_run_ends_bit_equal(run, tmp_path):
    full, _ = run(val=False)
    shutil.rmtree(tmp_path / 'features')

    class Stop(Hook):

        def after_train_iter(self, runner, *args, **kwargs):
            if runner.iter == 3:
                raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run(name='cut', hooks=[Stop()], val=False)
    resumed, _ = run(name='cut', val=False)
    assert_equal(resumed, full)


def test_variants_alternate_between_epochs(run):
    drawing = dict(SAMPLE, test_mode=False)
    options = dict(sample=drawing, epochs=3, val=False)
    first, counts = run(num_variants=2, **options)
    assert [count['DecordInit'] for count in counts] == [
        NUM_TRAIN, NUM_TRAIN, 0]
    again, counts = run(num_variants=2, **options)
    assert counts == [{}] * 3
    assert_equal(again, first)
    other, counts = run(num_variants=1, **options)
    assert counts == [{}] * 3
    assert any(not torch.equal(other[name], first[name]) for name in first)


def test_changed_settings_are_computed_again(run):
    run(epochs=1, val=False)
    for options, computed in (
            ({}, 0),
            # Options of training do not matter.
            (dict(backbone=dict(drop_rate=0.)), 0),
            (dict(backbone=dict(norm_eps=1e-5)), NUM_TRAIN),
            # Another seed initializes other frozen weights.
            (dict(seed=1), NUM_TRAIN),
            (dict(sample=dict(type='SampleFrames', clip_len=4,
                              test_mode=True)), NUM_TRAIN),
            (dict(preprocessor=dict(to_rgb=True)), NUM_TRAIN),
            (dict(dtype='float16'), NUM_TRAIN),
            (dict(freeze='backbone'), NUM_TRAIN)):
        _, (count, ) = run(epochs=1, val=False, **options)
        assert count['DecordInit'] == computed, options


def test_video_is_identified_by_its_content(run, videos):
    one, two = (videos / f'train/{i:06d}.mp4' for i in range(2))

    def opened():
        return run(epochs=1, val=False)[1][0]['DecordInit']

    assert opened() == NUM_TRAIN
    os.utime(one, (1e9, 1e9))
    assert opened() == 0
    # Features of this content are already stored.
    shutil.copy(two, one)
    assert opened() == 0
    shutil.copy(videos / 'val/000000.mp4', one)
    assert opened() == 1


def test_damaged_features_are_computed_again(run, tmp_path):
    full, _ = run(val=False)
    first, second, *_ = files = sorted(
        (tmp_path / 'features').glob('*/*/*.safetensors'))
    content = second.read_bytes()
    first.write_bytes(first.read_bytes()[:-7])
    # Flip one bit without changing the size.
    second.write_bytes(content[:-1] + bytes([content[-1] ^ 1]))
    again, (count, then) = run(val=False, name='again')
    assert count == dict(ViViT=2, DecordInit=2) and not then
    assert log_of(tmp_path / 'again').count('is damaged') == 2
    assert sorted((tmp_path / 'features').glob('*/*/*.safetensors')) == files
    assert second.read_bytes() == content
    assert_equal(again, full)


def test_logs_counts_once_per_change(tmp_path):
    hook, output = FeatureCacheHook(str(tmp_path)), []
    runner = SimpleNamespace(logger=SimpleNamespace(info=output.append))
    counts = iter([(0, 6), (6, 0), (6, 0), (5, 1)])
    hook.writer = SimpleNamespace(
        take_counts=lambda: next(counts), size=2_500_000, root='features')
    for _ in range(4):
        hook._log_counts(runner, 'training')
    assert output == [
        f'cached features: training, {disk} clips from disk, {new} computed; '
        '2.50 MB in features' for disk, new in [(0, 6), (6, 0), (5, 1)]]


def test_limits_size_and_clears(run, tmp_path, capfd):
    folder = tmp_path / 'features'
    run(val=False, epochs=1)
    one, = describe_folders(folder)
    assert one['files'] == NUM_TRAIN
    # Leave space for one and a half files.
    limit = (one['size'] + 1.5 * one['size'] / NUM_TRAIN) / 1e9
    _, counts = run(val=False, epochs=2, seed=1, max_gb=limit,
                    name='full')
    assert [count['ViViT'] for count in counts] == [NUM_TRAIN, NUM_TRAIN - 1]
    assert log_of(tmp_path / 'full').count('is full') == 1
    capfd.readouterr()
    feature_cache([str(folder)])
    output = capfd.readouterr().out.splitlines()
    assert len(output) == 2 and f'{NUM_TRAIN} clips' in output[1]
    assert 'spatial of ViViT' in output[0]
    os.utime(one['path'] / 'settings.json', (1e9, 1e9))
    feature_cache([str(folder), '--clear-unused', '30'])
    assert f'deleted {one["path"]}' in capfd.readouterr().out
    assert not one['path'].exists() and (folder / VIDEOS).exists()
    feature_cache([str(folder), '--clear-unused', '0'])
    assert not [*folder.iterdir()]
    with pytest.raises(SystemExit, match='no cached features in'):
        feature_cache([str(folder)])


def test_broken_video_is_skipped_in_each_epoch(run, videos):
    with open(videos / 'train.txt', 'a') as file:
        file.write('none.mp4 0\n')
    # From the second epoch on, only this video is opened, so that its failures
    # come in a row.
    _, counts = run(val=False, epochs=4, loader=dict(max_failures=3))
    assert counts[0]['DecordInit'] >= NUM_TRAIN - 1


@pytest.mark.parametrize('options, error', [
    (dict(sample=dict(SAMPLE, test_mode=False)),
     'UniformSample of the pipeline is random: cached features need a '
     'deterministic pipeline, or num_variants'),
    (dict(freeze=1), "need freeze='spatial' or 'backbone', got 1"),
    (dict(preprocessor=dict(blending=dict(type='MixupBlending',
                                          num_classes=8))),
     'blending mixes clips at random')], ids=str)
def test_rejects_settings_that_cannot_be_cached(run, options, error):
    with pytest.raises(ValueError, match=error):
        run(val=False, **options)


def test_needs_the_parts_of_safe_runner():
    with pytest.raises(RuntimeError, match='FeatureCacheHook has no effect'):
        FeatureCacheHook('features').before_run(object())
    runner = SimpleNamespace(train_loop=object(), model=torch.nn.Identity())
    with pytest.raises(ValueError, match='num_variants > 1 .*by_epoch=True'):
        FeatureCacheHook('features', 2).before_train(runner)
    with pytest.raises(ValueError, match='FineTunedRecognizer3D .* Identity'):
        FeatureCacheHook('features').before_train(runner)
