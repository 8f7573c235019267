# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Tests of mmaction2's inference functions with our configs."""

import decord
import pytest
import torch
from mmaction.apis import MMAction2Inferencer
from mmengine.config import Config

import mmvidattn
from mmvidattn.apis import find_config, load_config
from mmvidattn.apis.labels import probabilities
from mmvidattn.apis.video_clips import ClipPipeline, read_clips

NAME = 'linear_ff_tiny_motion'
# One pipeline samples by seconds, the other samples consecutive frames.
PIPELINES = 'dualformer_tiny_k400', 'laps_tiny_motion'


@pytest.fixture(scope='module')
def video(motion_dir):
    return str(motion_dir / 'val/000001.mp4')


@pytest.fixture(scope='module')
def frames(video):
    reader = decord.VideoReader(video, num_threads=1)
    return reader.get_batch(range(len(reader))).asnumpy()


def test_inferencer_of_mmaction_reads_files_and_frames(video, frames,
                                                       tmp_path):
    classifier = mmvidattn.VideoClassifier(mmvidattn.get_model(NAME))
    checkpoint = tmp_path / 'model.pth'
    torch.save(dict(state_dict=classifier.model.state_dict()), checkpoint)
    for form, source in (('video', video), ('array', frames)):
        inferencer = MMAction2Inferencer(
            str(find_config(NAME)), str(checkpoint), 'cpu', input_format=form)
        one, = inferencer(source, batch_size=2)['predictions']
        torch.testing.assert_close(
            probabilities(classifier.model, torch.tensor(
                one['rec_scores'][0])),
            # The inferencer decodes with decord.
            classifier(video).probabilities, atol=1e-3, rtol=0)


@pytest.mark.parametrize('name', PIPELINES)
def test_pipelines_read_videos(name, video, frames):
    """Compare the inputs from a file and from memory."""
    ours = ClipPipeline(load_config(name))
    fps = decord.VideoReader(video, num_threads=1).get_avg_fps()
    expected, got = (
        ours(next(read_clips(source, ours, fps)).sample)['inputs']
        for source, fps in ((video, None), (frames, fps)))
    assert expected.dtype == torch.uint8 and expected.ndim == 5
    assert torch.equal(expected, got)


def test_pipeline_of_images_reads_videos(video, frames):
    cfg = Config(dict(test_pipeline=[
        dict(type='SampleFrames', clip_len=4, num_clips=2, test_mode=True),
        dict(type='RawFrameDecode'),
        dict(type='FormatShape', input_format='NCTHW'),
        dict(type='PackActionInputs')]))
    pipeline = ClipPipeline(cfg)
    for source in video, frames:
        sample = next(read_clips(source, pipeline, None)).sample
        result = pipeline(sample)['inputs'].movedim(1, -1)
        assert torch.equal(result[0], torch.from_numpy(frames[:4]))
        assert torch.equal(result[1], torch.from_numpy(frames[-4:]))
