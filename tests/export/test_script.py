# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
import json
import re
import subprocess
import sys

import pytest
import torch
from mmengine.dataset import Compose

from mmvidattn import VideoClassifier, export, get_model
from mmvidattn.apis import video_clips
from mmvidattn.apis.bundle_types.registry import BundleConfig

# Its capture takes a third of the time of the other families.
CONFIG = 'vivit_tiny_motion'
SHAPE = 8, 64, 64
SAMPLERS = ('UniformSample', 'SegmentSampleFrames', 'SampleFrames',
            'CenteredSampleFrames', 'ScenicSampleFrames',
            'SpreadSampleFrames')
# The script must not import these modules, not even indirectly.
BLOCKED = """
import runpy, sys
sys.modules.update(dict.fromkeys({blocked}))
sys.argv = sys.argv[1:]
runpy.run_path(sys.argv[0], run_name='__main__')
"""
OTHERS = 'mmvidattn', 'mmaction', 'mmengine', 'mmcv', 'decord'


@pytest.fixture
def model(monkeypatch):
    monkeypatch.setattr(export.script, 'MAX_FRAMES', 400)
    torch.manual_seed(0)
    model = get_model(CONFIG, cfg_options={'model.backbone.num_layers': 1})
    # With initial weights, logits hardly depend on the video.
    torch.nn.init.normal_(model.cls_head.fc_cls.weight, std=0.3)
    model.cls_head.average_clips = 'score'
    model.dataset_meta = dict(classes=list('abcdefgh'))
    return model


def set_pipeline(model, sampler, crop='ThreeCrop', scale=(-1, 64), **options):
    model.cfg.test_dataloader.dataset.pipeline = [
        dict(type='DecordInit'), sampler, dict(type='DecordDecode'),
        dict(type='Resize', scale=scale, **options),
        dict(type=crop, crop_size=64),
        dict(type='FormatShape', input_format='NCTHW'),
        dict(type='PackActionInputs')]


@pytest.mark.parametrize('num_clips', [1, 3])
@pytest.mark.parametrize('name', SAMPLERS)
def test_every_sampler_matches_the_pipeline(model, name, num_clips):
    """`script_settings` compares the clips of videos of several lengths."""
    sampler = dict(type=name, clip_len=8, num_clips=num_clips, test_mode=True)
    if name not in ('UniformSample', 'SegmentSampleFrames'):
        sampler['frame_interval'] = 7
    set_pipeline(model, sampler)
    settings = export.script_settings(export.program_of(model, SHAPE))
    sample = Compose(video_clips.test_steps(model.cfg).sample)
    for n in 1, 50, 57, 58, 399, 400:
        want = sample(video_clips.sample_of(n, avg_fps=25.))
        assert export.classify.choose_frames(n, settings).tolist() == (
            want['frame_inds'].ravel().tolist())
    for n in 0, 401:
        with pytest.raises(ValueError, match=f'^{n} frames, expected 1 to 4'):
            export.classify.choose_frames(n, settings)


@pytest.mark.parametrize('crop, options, normalize, to_rgb', [
    ('CenterCrop', dict(scale=(-1, 72)), None, False),
    # The space beside a crop is odd.
    ('UniformThreeCrop', dict(scale=(-1, 73)), None, True),
    ('ThreeCrop', dict(scale=(72, 64), keep_ratio=False), 'uint8', True),
    ('CenterCrop', dict(scale=(90, 70), keep_ratio=False), 'float32', False),
])
def test_crops_sizes_and_colors_match_the_pipeline(
        model, crop, options, normalize, to_rgb):
    set_pipeline(model, dict(type='UniformSample', clip_len=8, num_clips=2,
                             test_mode=True), crop, **options)
    model.data_preprocessor.to_rgb = to_rgb
    program = export.program_of(model, SHAPE, normalize=normalize)
    export.script_settings(program)
    preprocessing = json.loads(program.metadata()['preprocessing'])
    assert preprocessing['color_order'] == (
        'bgr' if to_rgb and normalize is None else 'rgb')
    assert [step['type'] for step in preprocessing['steps']] == [
        'UniformSample', 'Resize', crop]
    assert preprocessing['average_views'] == 'logits'


def sample_frames(**options):
    return dict(dict(type='SampleFrames', clip_len=8, num_clips=1), **options)


@pytest.mark.parametrize('change, message', [
    *((lambda model, step=step: set_pipeline(model, step),
       'depend on the frame rate or on chance') for step in (
           sample_frames(), dict(sample_frames(test_mode=True),
                                 type='SlowFastSampleFrames'))),
    (lambda model: set_pipeline(
        model, sample_frames(test_mode=True), interpolation='nearest'),
     r'Resize \(bilinear\)'),
    (lambda model: set_pipeline(
        model, sample_frames(test_mode=True), 'TenCrop'),
     'must be a sampler, Resize .* and a crop .*got .*TenCrop'),
    (lambda model: set_pipeline(
        model, sample_frames(test_mode=True, clip_len=4), 'CenterCrop'),
     r'clips of \(4, 64, 64\), but the file expects \(8, 64, 64\)'),
    (lambda model: setattr(model.cls_head, 'average_clips', None),
     'average_clips=None'),
    (lambda model: set_pipeline(model, sample_frames(test_mode=True)),
     'differ from the test pipeline')])
def test_reports_why_no_script_is_written(model, monkeypatch, change,
                                          message):
    # A fault of the script.
    monkeypatch.setitem(export.script.CROPS, 'ThreeCrop', export.script.CROPS[
        'UniformThreeCrop'])
    change(model)
    with pytest.raises(ValueError, match=message):
        export.script_settings(export.program_of(model, SHAPE))


def test_steps_of_a_bundle_are_restricted(model, caplog):
    set_pipeline(model, dict(type='LoadHVULabel'))
    model.cfg = BundleConfig(model.cfg.to_dict())
    with pytest.raises(ValueError, match='may not contain .*LoadHVULabel'):
        export.script_settings(export.program_of(model, SHAPE))
    assert 'default scope' not in caplog.text


@pytest.mark.parametrize('suffix, output, average', [
    ('onnx', 'probabilities', 'score'), ('pt2', 'logits', 'prob'), *(
        pytest.param(*row, marks=pytest.mark.slow) for row in (
            ('onnx', 'logits', 'score'), ('onnx', 'logits', 'prob'),
            ('pt2', 'probabilities', 'prob'), ('pt2', 'logits', 'score')))])
def test_script_gives_the_answer_of_the_classifier(
        model, motion_dir, tmp_path, suffix, output, average):
    if suffix == 'onnx':
        pytest.importorskip('onnxruntime')
    video = str(motion_dir / 'val/000000.mp4')
    model.cls_head.average_clips = average
    path = tmp_path / f'model.{suffix}'
    blocked = (*OTHERS, 'torch') if suffix == 'onnx' else OTHERS
    program = export.program_of(model, SHAPE, output, 'uint8')
    export.export_program(program, path, dict(
        script=json.dumps(export.script_settings(program))))
    text, missing = path.with_name('text.mp4'), path.with_name('missing.mp4')
    text.write_text('not a video')
    copied = export.copy_script(path)
    done = subprocess.run(
        [sys.executable, '-c', BLOCKED.format(blocked=blocked), copied, text,
         missing, video], capture_output=True, text=True)
    # Unreadable videos do not end the list.
    assert done.returncode == 1, done.stderr
    assert [line.split(' (')[0] for line in done.stderr.splitlines()] == [
        f'not classified: {text}', f'not classified: {missing}']
    got = {label: float(score) for score, label in re.findall(
        r'^\S+ (\d\.\d+) (.+)$', done.stdout, re.MULTILINE)}
    classes = json.loads(export.read_metadata(path)['classes'])
    assert classes == list('abcdefgh')
    want, other = map(VideoClassifier(model), (
        video, motion_dir / 'val/000001.mp4'))
    # Far above the tolerance below.
    assert (want.probabilities - other.probabilities).abs().max() > 4e-4
    assert [*got] == [p.label for p in want.predictions]
    for p in want.predictions:
        assert got[p.label] == pytest.approx(p.score, abs=2e-5)
    assert 0.2 < max(got.values()) < 0.999
