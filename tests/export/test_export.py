# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
import json
import warnings
from functools import cache
from pathlib import Path

import pytest
import torch
from backbones.families import build, clips_for
from helpers import relative
from online.networks import VARIANTS, detector_of
from torch import nn

from mmvidattn import export, get_model
from mmvidattn.backbones import VisionTransformerLAPS, XViT
from mmvidattn.export.export import capture, difference
from mmvidattn.export.formats import check_format
from mmvidattn.export.programs import Program
from mmvidattn.online import StreamSession, online_video_encoder
from tools.analysis.export_table import MODELS

QUICK = 'ViViT 1, joint'
# Attention windows and pyramids adapt to the number of frames. It has one
# block per stage, and no position embeddings, which make the capture slower.
ANY_LENGTH = MODELS['DualFormer']._replace(options={
    'model.backbone.arch': dict(
        _delete_=True, embed_dims=8, num_layers=(1, 1, 1, 1),
        num_heads=(1, 1, 1, 1)),
    'model.backbone.pattern': ('GG', 'LL', 'GG', 'GG'),
    'model.backbone.position': 'none', 'model.cls_head.in_channels': 64})

pytestmark = pytest.mark.skipif(
    not hasattr(torch.export.Dim, 'DYNAMIC'),
    reason='export needs torch 2.6 or newer')


@pytest.fixture(scope='module', autouse=True)
def capture_once():
    """Capture each program once for all formats."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr('mmvidattn.export.export.capture', cache(capture))
        yield


def needs(suffix):
    """Skip a test of files that this machine cannot write."""
    try:
        check_format(Path(f'x.{suffix}'))
    except ValueError as error:
        pytest.skip(str(error))


class Small(Program):
    """Program of a single module or function."""
    input_names, output_names, axes = ('x', ), ('y', ), ({0: 'batch'}, )
    metadata = dict

    def __init__(self, inner):
        super().__init__()
        self.inner = inner

    def examples(self, batch_size, larger=False):
        return torch.linspace(1, 2, 4 * batch_size).view(batch_size, 4),

    def forward(self, x):
        return self.inner(x),


# Each once fixed the batch size, for a different reason.
@pytest.mark.parametrize('backbone', [XViT, VisionTransformerLAPS])
def test_backbones_support_dynamic_batch(backbone):
    model = build(backbone).eval()
    batch = torch.export.Dim('batch')
    with torch.no_grad():
        program = torch.export.export(
            model, (clips_for(model, 3), ),
            dynamic_shapes=({0: batch}, )).module()
        for size in 1, 5:
            clips = clips_for(model, size)
            assert relative(program(clips), model(clips)) < 1e-4


def check_clips(program, function, frames, size):
    for batch_size in 1, 5:
        clips = torch.randn(batch_size, 3, frames, size, size)
        with torch.no_grad():
            want = program.model(clips[:, None], stage='head')
            assert relative(function(clips)[0], want) < 1e-4


def check_streams(function, metadata, model, frames, **options):
    """Compare a program with sessions, one for each stream.

    Args:
        frames: Inputs of each step, by name, with the streams as batch.
    """
    number = len(next(iter(frames[0].values())))
    sessions = [StreamSession(model, **options)]
    sessions += [sessions[0].spawn() for _ in range(number - 1)]
    state = [torch.full((number, *x['shape']), float(x['value']),
                        dtype=getattr(torch, x['dtype']))
             for x in json.loads(metadata['state']).values()]
    for frame in frames:
        action, bad, *state = function(*frame.values(), *state)
        with warnings.catch_warnings():
            warnings.simplefilter('ignore')
            want = StreamSession.push_many(sessions, [
                {name: x[i] for name, x in frame.items()}
                for i in range(number)])
        assert bad.tolist() == [x['bad_frame'].item() for x in want]
        for got, x in zip(action, want):
            assert relative(got, x['action']) < 1e-4
    assert sessions[-1].num_bad_frames == 1
    return state


@pytest.mark.slow
@pytest.mark.parametrize('suffix', export.FORMATS)
@pytest.mark.parametrize('name', [*MODELS, 'DualFormer, any length'])
def test_each_family_matches_its_file(tmp_path, name, suffix):
    needs(suffix)
    path, dynamic = tmp_path / f'model.{suffix}', name not in MODELS
    small = MODELS.get(name, ANY_LENGTH)
    program = small.program(dynamic=['frames'] * dynamic)
    # The differences include the state.
    assert max(export.export_program(program, path).values()) < 1e-4
    if not isinstance(program, export.StreamProgram):
        frames = program.model.backbone.num_frames
        for number in (frames, 2 * frames)[:1 + dynamic]:
            check_clips(program, export.load_program(path), number, 64)
        clips, = json.loads(export.read_metadata(path)['inputs'])
        assert clips['shape'] == [
            'batch', 3, 'frames' if dynamic else frames, 64, 64]


@pytest.mark.parametrize('kernel', ['window', 'smoothing'])
def test_repeated_steps_equal_a_session(kernel):
    """Run two streams, one with a bad frame, by the program itself."""
    torch.manual_seed(0)
    model = detector_of(VARIANTS['laplace']).eval()
    model.dataset_meta, model.cfg = {}, {}
    # A config without rates has the rates of a session.
    program = export.program_of(model, kernel=kernel)
    videos = {name: torch.randn(50, 2, channels)
              for name, channels in model.backbone.in_channels.items()}
    videos['rgb'][20, 1] = torch.nan
    frames = [{name: x[t] for name, x in videos.items()} for t in range(50)]
    state = check_streams(torch.no_grad()(program), program.metadata(), model,
                          frames, kernel=kernel)
    assert state[0].tolist() == [50, 50]


@pytest.mark.parametrize('suffix', [
    'pt2', pytest.param('onnx', marks=pytest.mark.slow)])
def test_step_of_a_video_network_takes_any_number_of_streams(
        tmp_path, monkeypatch, suffix):
    needs(suffix)
    # Sessions process streams one by one; programs must not.
    monkeypatch.setattr(online_video_encoder, 'VALUES_AT_ONCE', 0)
    torch.manual_seed(0)
    model = get_model('linear_ff_causal_tiny_synthetic')
    for name, x in model.named_parameters():
        if 'log_factor' not in name:
            nn.init.normal_(x, x.mean().item(), .2)
    path = tmp_path / f'step.{suffix}'
    differences = export.export_program(export.program_of(model), path)
    assert max(differences.values()) < 1e-4
    function, metadata = export.load_program(path), export.read_metadata(path)
    assert json.loads(metadata['stream']) == dict(frame_rate=25.)
    assert json.loads(metadata['normalization'])['inside']
    assert json.loads(metadata['preprocessing'])['color_order'] == 'rgb'
    shape = model.backbone.encoder.frame_shape
    generator = torch.Generator().manual_seed(0)
    for number in (1, 3):
        images = torch.randint(256, (20, number, 3, *shape),
                               generator=generator).float()
        images[7, number - 1, 1, 2, 3] = torch.nan
        elapsed = 2 * torch.rand(20, number, generator=generator)
        check_streams(function, metadata, model, [
            dict(frames=x, elapsed=time) for x, time in zip(images, elapsed)])


def test_file_contains_labels_and_normalization(tmp_path):
    """The file accepts uint8 BGR clips like the data preprocessor."""
    needs('onnx')
    model, path = get_model(MODELS[QUICK].config), tmp_path / 'model.onnx'
    model.backbone.encoder.blocks = model.backbone.encoder.blocks[:1]
    model.dataset_meta = dict(classes=[f'class {i}' for i in range(8)])
    preprocessor = model.data_preprocessor
    preprocessor.mean = torch.tensor([100., 120., 130.]).view(3, 1, 1, 1)
    preprocessor.std = torch.tensor([50., 60., 70.]).view(3, 1, 1, 1)
    preprocessor.to_rgb = True
    nn.init.normal_(model.cls_head.fc_cls.weight)
    program = export.program_of(model, (8, 64, 64), 'probabilities', 'uint8')
    export.export_program(program, path, metadata=dict(config='mine'))
    assert [*tmp_path.iterdir()] == [path]
    metadata = export.read_metadata(path)
    assert json.loads(metadata['classes'])[3] == 'class 3'
    assert metadata['config'] == 'mine'
    assert json.loads(metadata['inputs']) == [
        dict(name='clips', dtype='uint8', shape=['batch', 3, 8, 64, 64])]
    assert json.loads(metadata['normalization']) == dict(
        inside=True, mean=[100, 120, 130], std=[50, 60, 70])
    assert json.loads(metadata['preprocessing'])['color_order'] == 'rgb'
    graph = __import__('onnx').load(path).graph
    assert [x.name for x in (*graph.input, *graph.output)] == [
        'clips', 'probabilities']
    assert graph.input[0].type.tensor_type.shape.dim[0].dim_param == 'batch'
    function = export.load_program(path)
    for size in 1, 5:
        # Scores depend on a color more than on noise.
        clips = torch.randint(256, (size, 3, 1, 1, 1), dtype=torch.uint8
                              ).expand(-1, -1, 8, 64, 64).contiguous()
        with torch.no_grad():
            inputs = model.data_preprocessor(dict(
                inputs=list(clips[:, None]), data_samples=None))['inputs']
            want = model(inputs, stage='head').softmax(-1)
        assert size == 1 or want.std(dim=0).max() > 1e-3
        assert relative(function(clips)[0], want) < 1e-4


def depends_on_values(x):
    return x if x.sum() > 0 else -x


def differs_in_export(x):
    return x * (1.01 if torch.compiler.is_exporting() else 1)


@pytest.mark.parametrize('function, suffix, error', [
    (torch.special.airy_ai, 'onnx',
     'ONNX cannot represent this model: .*special_airy_ai'),
    (depends_on_values, 'pt2',
     'torch.export cannot capture the model: .*data-dependent'),
    (lambda x: x * len(x), 'pt2', r'cannot capture .*constant \(3\)'),
    (differs_in_export, 'pt2', 'differs from the model: y of batch')])
def test_keeps_the_old_file_after_an_error(tmp_path, function, suffix, error):
    needs(suffix)
    path = tmp_path / f'x.{suffix}'
    path.write_text('before')
    with pytest.raises(ValueError, match=error):
        export.export_program(Small(function), path)
    assert [*tmp_path.iterdir()] == [path] and path.read_text() == 'before'


def test_differences_are_relative_to_the_largest_value():
    inf = torch.inf
    want = torch.tensor([-4., 2., inf])
    assert difference(torch.tensor([-4., 2.5, inf]), want) == 1 / 8
    assert difference(torch.tensor([-4., torch.nan, inf]), want) == inf
    assert difference(torch.tensor([-4., 2., -inf]), want) == inf
    assert difference(torch.zeros(2), torch.zeros(2)) == 0
    assert difference(torch.ones(2), torch.zeros(2)) == inf
    assert difference(torch.ones(1), torch.ones(2)) == inf


@pytest.mark.parametrize('name, options, message', [
    (QUICK, dict(dynamic=['depth']), "dynamic must be .*'size'.*'depth'"),
    (QUICK, dict(normalize='int4'), "normalize must be one of .* 'int4'"),
    (QUICK, dict(output='votes'), "output must be one of .* got 'votes'"),
    (QUICK, dict(kernel='window'), "kernel='window' .*Recognizer3D"),
    ('TeSTra, step, window', dict(normalize='uint8'),
     "normalize='uint8' .*Detector"),
    (QUICK, dict(dynamic=['frames']), 'takes no other sizes.*num_frames'),
    (QUICK, dict(dynamic=['size']), 'img_size'),
    (None, {}, 'must be a Recognizer3D')])
def test_rejects_options(name, options, message, tmp_path):
    model = nn.Linear(2, 2) if name is None else get_model(MODELS[name].config)
    with pytest.raises(ValueError, match=message):
        export.export_program(export.program_of(model, (8, 64, 64), **options),
                              tmp_path / 'x.pt2')
    assert not [*tmp_path.iterdir()]
