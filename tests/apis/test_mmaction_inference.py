# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Tests of mmaction2's inference functions with our configs."""
import copy

import decord
import pytest
import torch
from mmaction.apis import (
    ActionRecogInferencer,
    MMAction2Inferencer,
    inference_recognizer,
    init_recognizer,
)
from mmengine.config import Config

import mmvidattn
from mmvidattn.apis import find_config, load_config
from mmvidattn.apis.labels import probabilities
from mmvidattn.apis.video_clips import ClipPipeline, whole_clip

TINY = 'laps_tiny_motion', 'linear_ff_tiny_motion'
# One pipeline samples by seconds, the other samples consecutive frames.
PIPELINES = 'dualformer_tiny_k400', 'laps_tiny_motion'


@pytest.fixture(scope='module')
def video(motion_dir):
    return str(motion_dir / 'val/000001.mp4')


@pytest.fixture(scope='module')
def frames(video):
    reader = decord.VideoReader(video, num_threads=1)
    return reader.get_batch(range(len(reader))).asnumpy()


@pytest.mark.parametrize('name', TINY)
def test_scores_equal_ours(name, video, frames, tmp_path):
    torch.manual_seed(0)
    config = str(find_config(name))
    model = init_recognizer(config, device='cpu')
    got = inference_recognizer(model, video).pred_score
    expected = mmvidattn.VideoClassifier(mmvidattn.get_model(name))
    expected.model.load_state_dict(model.state_dict())
    torch.testing.assert_close(
        expected(video).probabilities, probabilities(model, got), atol=1e-6,
        rtol=0)

    checkpoint = tmp_path / 'model.pth'
    torch.save(dict(state_dict=model.state_dict()), checkpoint)
    scores = []
    for form, source in (('video', video), ('array', frames)):
        inferencer = MMAction2Inferencer(
            config, str(checkpoint), 'cpu', input_format=form)
        one, = inferencer(source, batch_size=2)['predictions']
        scores.append(torch.tensor(one['rec_scores'][0]))
    assert probabilities(model, scores[0]).sum() == pytest.approx(1, abs=1e-5)
    assert len(scores[0]) == 8
    torch.testing.assert_close(*scores, atol=1e-6, rtol=0)


@pytest.mark.parametrize('name', PIPELINES)
def test_pipelines_read_videos(name, video, frames):
    """Compare mmaction2's inputs with ours, from a file and from memory."""
    cfg = load_config(name)
    ours = ClipPipeline(cfg)
    fps = decord.VideoReader(video, num_threads=1).get_avg_fps()
    expected, got = (
        ours(whole_clip(source, ours, fps).sample)['inputs']
        for source, fps in ((video, None), (frames, fps)))
    assert expected.dtype == torch.uint8 and expected.ndim == 5
    assert torch.equal(expected, got)
    for form, source in (('video', video), ('array', frames)):
        inferencer = object.__new__(ActionRecogInferencer)
        inferencer.input_format, inferencer.pack_cfg = form, {}
        pipeline = inferencer._init_pipeline(copy.deepcopy(cfg))
        inputs = pipeline(source)['inputs']
        # The inferencer uses the center crop instead of three crops.
        assert inputs.shape[1:] == expected.shape[1:]
        assert len(expected) % len(inputs) == 0


def test_pipeline_of_images_reads_videos(video, frames):
    cfg = Config(dict(test_pipeline=[
        dict(type='SampleFrames', clip_len=4, num_clips=2, test_mode=True),
        dict(type='RawFrameDecode'),
        dict(type='FormatShape', input_format='NCTHW'),
        dict(type='PackActionInputs')]))
    pipeline = ClipPipeline(cfg)
    for source in video, frames:
        sample = whole_clip(source, pipeline, None).sample
        result = pipeline(sample)['inputs'].movedim(1, -1)
        assert torch.equal(result[0], torch.from_numpy(frames[:4]))
        assert torch.equal(result[1], torch.from_numpy(frames[-4:]))
