# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
import functools
import os
import shutil
from http.server import SimpleHTTPRequestHandler
from pathlib import Path
from types import SimpleNamespace

import cv2
import decord
import numpy as np
import pytest
import torch
from live_fixtures import close, serve
from made_videos import write_opencv
from mmaction.apis import MMAction2Inferencer, inference_recognizer
from mmengine.config import Config

import mmvidattn
from mmvidattn.apis import find_config, load_config
from mmvidattn.apis.labels import probabilities
from mmvidattn.apis.video_clips import ClipPipeline, read_clips

NAME = 'linear_ff_tiny_motion'
FPS = 10


def frames_of(path):
    reader = decord.VideoReader(str(path), num_threads=1)
    return reader.get_batch(range(len(reader))).asnumpy()


@pytest.fixture(scope='module')
def classifier():
    torch.manual_seed(0)
    model = mmvidattn.get_model(
        NAME, cfg_options={'model.backbone.num_layers': 1})
    # With the initial weights, scores hardly depend on the video.
    torch.nn.init.normal_(model.cls_head.fc_cls.weight, std=.05)
    torch.nn.init.normal_(model.cls_head.fc_hidden.weight, std=.3)
    return mmvidattn.VideoClassifier(model)


@pytest.fixture(scope='module')
def video(motion_dir):
    return motion_dir / 'val/000001.mp4'


@pytest.fixture(scope='module')
def long_video(tmp_path_factory):
    x = np.arange(64)[:, None] * [3, 5, 7]
    return write_opencv(tmp_path_factory.mktemp('long') / 'long.mp4', [
        np.uint8([(x + i * np.array([7, 5, 3])) % 256] * 32)
        for i in range(105)], FPS)


def check_same(found, expected):
    torch.testing.assert_close(
        found.probabilities, expected.probabilities, atol=1e-6, rtol=0)
    assert found.predictions[0].index == expected.predictions[0].index


@pytest.mark.parametrize('average', ['score', 'prob'])
def test_matches_mmaction(classifier, video, average, monkeypatch):
    monkeypatch.setattr(classifier.model.cls_head, 'average_clips', average)
    expected = inference_recognizer(classifier.model, str(video)).pred_score
    if average == 'score':
        expected = expected.softmax(0)
    result = mmvidattn.VideoClassifier(
        classifier.model, labels=list('abcdefg'))(video, topk=8).predictions
    assert [p.score for p in result] == pytest.approx(
        expected.sort(descending=True).values.tolist())
    assert [p.index for p in result] == expected.argsort(
        descending=True).tolist()
    top = classifier(video, topk=3).predictions
    assert [p.index for p in top] == [p.index for p in result[:3]]
    assert len(classifier(video, topk=100).predictions) == 8
    for p in result:
        assert p.label == ('abcdefg'[p.index] if p.index < 7 else 'class 7')


@pytest.mark.parametrize('cfg', [
    # It samples by seconds.
    load_config('dualformer_tiny_k400'),
    Config(dict(test_pipeline=[
        dict(type='SampleFrames', clip_len=4, num_clips=2, test_mode=True),
        dict(type='RawFrameDecode'),
        dict(type='FormatShape', input_format='NCTHW'),
        dict(type='PackActionInputs')]))], ids=['seconds', 'images'])
def test_pipelines_read_files_and_frames(cfg, video):
    pipeline, frames = ClipPipeline(cfg), frames_of(video)
    fps = decord.VideoReader(str(video), num_threads=1).get_avg_fps()
    expected, got = (
        pipeline(next(read_clips(source, pipeline, fps)).sample)['inputs']
        for source, fps in ((video, None), (frames, fps)))
    assert expected.dtype == torch.uint8 and expected.ndim == 5
    assert torch.equal(expected, got)


def test_frames_in_memory_and_in_a_folder_match_the_file(
        classifier, video, tmp_path):
    expected, frames = classifier(video), frames_of(video)
    assert expected.probabilities.sum() == pytest.approx(1)
    for i, frame in enumerate(frames):
        cv2.imwrite(str(tmp_path / f'{i}.png'), frame[..., ::-1])
    for source in str(video), frames, tmp_path:
        check_same(classifier(source), expected)
    got = classifier(torch.from_numpy(frames), fps=20)
    check_same(got, expected)
    assert (got.start, got.end) == (0, len(frames) / 20)
    assert classifier(frames).end is None
    # The scores must depend on the frames.
    other = classifier(frames[::-1].copy())
    assert (other.probabilities - expected.probabilities).abs().max() > 1e-3
    # There are more than 10 frames, to test the order of 9.png and 10.png.
    for result, expected in zip(
            classifier.windows(tmp_path, .5, .3, fps=20),
            classifier.windows(frames, .5, .3, fps=20), strict=True):
        check_same(result, expected)
        assert (result.start, result.end) == (expected.start, expected.end)


def test_url_matches_file(classifier, video):
    server = serve(functools.partial(
        SimpleHTTPRequestHandler, directory=video.parent))
    url = f'http://127.0.0.1:{server.server_port}/{video.name}'
    result = classifier(f'{url}?token=secret')
    check_same(result, classifier(video))
    assert result.video == url
    with pytest.raises(ValueError, match='/none.mp4: cannot download: .*404'):
        classifier(url.replace(video.name, 'none.mp4'))
    close(server)


def test_folder_of_videos_with_broken_ones(classifier, video, tmp_path):
    (tmp_path / 'sub').mkdir()
    shutil.copy(video, tmp_path / 'a.mp4')
    (tmp_path / 'b.mp4').write_bytes(b'no video' * 100)
    (tmp_path / 'c.mp4').write_bytes(video.read_bytes()[:-1000])
    shutil.copy(video, tmp_path / 'sub/d.mp4')
    result = classifier(tmp_path, batch_size=3)
    assert [Path(one.video).name for one in result] == [
        'a.mp4', 'b.mp4', 'c.mp4', 'd.mp4']
    assert [one.error is None for one in result] == [True, False, False, True]
    assert result[1].error.startswith(f'cannot read {tmp_path}/b.mp4: ')
    assert result[2].error.startswith(f'cannot read {tmp_path}/c.mp4: ')
    for one in result[0], result[3]:
        check_same(one, classifier(video))
    # For a single video, the classifier raises the error.
    with pytest.raises(ValueError, match='cannot read .*c.mp4: '):
        classifier(tmp_path / 'c.mp4')


@pytest.mark.parametrize('seconds, stride', [
    (4.3, 2.1), (2, 4.25), (100, None)])
def test_windows_match_cut_clips(classifier, long_video, seconds, stride):
    frames, step = frames_of(long_video), stride or seconds
    times = np.arange(len(frames)) / FPS
    number = 0
    for number, got in enumerate(classifier.windows(
            long_video, seconds, stride, batch_size=2)):
        start = number * step
        inside = (times >= start - 1e-6) & (times < start + seconds - 1e-6)
        check_same(got, classifier(frames[inside], fps=FPS))
        assert got.start == pytest.approx(start)
        assert got.end == pytest.approx(min(start + seconds, 10.5), abs=1e-3)
    # Windows without frames are left out.
    one_frame = list(classifier.windows(frames[:4], .5, fps=1))
    assert [one.start for one in one_frame] == [0, 1, 2, 3]
    # The last window reaches the end, or the next one would start after it.
    assert got.end > 10.49 or (number + 1) * step > 10.49


def test_windows_before_an_error_are_predicted(classifier, monkeypatch):
    def read_and_fail(*args):
        yield next(read_clips(*args))
        raise ValueError('broken frame')

    monkeypatch.setattr('mmvidattn.apis.video_classifier.read_clips',
                        read_and_fail)
    frames = np.zeros((16, 64, 64, 3), np.uint8)
    found = classifier.windows(frames, .8, fps=10, batch_size=3)
    assert next(found).predictions
    with pytest.raises(ValueError, match='cannot read frames: broken frame'):
        next(found)


@pytest.mark.parametrize('multi_class, average, convert', [
    (False, 'score', lambda x: x.softmax(-1)), (False, 'prob', torch.clone),
    (True, 'score', torch.sigmoid), (True, 'prob', torch.clone)])
def test_scores_become_probabilities_once(multi_class, average, convert):
    scores = torch.randn(5).sigmoid()
    model = SimpleNamespace(cls_head=SimpleNamespace(
        multi_class=multi_class, average_clips=average))
    torch.testing.assert_close(probabilities(model, scores), convert(scores))


def test_rejects_non_finite_scores(classifier, video, monkeypatch):
    monkeypatch.setattr(classifier.model.cls_head.fc_cls.bias, 'data',
                        torch.full((8, ), torch.inf))
    with pytest.raises(ValueError, match='000001.mp4: pred_score .*8 of 8'):
        classifier(video)
    for each in classifier([video, video]):
        assert 'pred_score' in each.error and not each.predictions


def test_warns_once_of_random_weights(video):
    with pytest.warns(UserWarning, match='random weights') as result:
        mmvidattn.VideoClassifier(NAME)
    assert len([w for w in result if 'random' in str(w.message)]) == 1
    assert result[0].filename == __file__
    with pytest.warns(UserWarning, match='random weights'):
        mmvidattn.SlidingClassifier(NAME, fps=25, seconds=1)
    with pytest.raises(ValueError, match='decode videos.*OnlineDetector'), (
            pytest.warns(UserWarning, match='random weights')):
        mmvidattn.VideoClassifier('testra_tiny_synthetic')


def test_inferencer_of_mmaction_reads_files_and_frames(classifier, video,
                                                       tmp_path):
    checkpoint = tmp_path / 'model.pth'
    torch.save(dict(state_dict=classifier.model.state_dict()), checkpoint)
    for form, source in ('video', str(video)), ('array', frames_of(video)):
        inferencer = MMAction2Inferencer(
            str(find_config(NAME)), str(checkpoint), 'cpu', input_format=form)
        one, = inferencer(source)['predictions']
        # The inferencer decodes with decord.
        torch.testing.assert_close(
            probabilities(classifier.model,
                          torch.tensor(one['rec_scores'][0])),
            classifier(video).probabilities, atol=4e-3, rtol=0)


def test_memory_does_not_grow(classifier, tmp_path):
    statm = Path('/proc/self/statm')
    if not statm.exists():
        pytest.skip('needs /proc')
    # All frames together have 35 MB.
    path = write_opencv(tmp_path / 'long.mp4', [
        np.full((120, 160, 3), i % 256, np.uint8) for i in range(600)], 5)
    pages = [int(statm.read_text().split()[1])
             for _ in classifier.windows(path, 20)]
    assert len(pages) == 6
    assert max(pages) - pages[1] < 12 * 2**20 / os.sysconf('SC_PAGE_SIZE')
