# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Sources, networks, models, runs and sinks that live detection rejects."""
import math
import sys
from pathlib import Path

import cv2
import numpy as np
import pytest
from live_fixtures import CLIPS, FRAMES, FakeRun, Pooled

from mmvidattn.live import FeatureExtractor, OnlineDetector, open_source
from mmvidattn.live.file_sinks import SegmentSink
from mmvidattn.live.networks import OpticalFlow
from mmvidattn.live.sinks import WebhookSink
from mmvidattn.live.step_reader import StepMaker
from mmvidattn.sources.files import FrameFolder
from mmvidattn.sources.network import LiveSource

IMAGE = np.zeros((48, 64, 3), np.uint8)


def check(function, message, *args, **kwargs):
    with pytest.raises(ValueError, match=message) as error:
        function(*args, **kwargs)
    assert 'secret' not in str(error.value)


@pytest.mark.parametrize('change, message', [
    (dict(takes='video'), "takes must be one of .* got 'video'"),
    (dict(color='GBR'), 'color must be one of'),
    (dict(interpolation='lanczos'), 'interpolation must be one of'),
    (dict(resize=(3, )), r'resize must be .*got \(3,\)'),
    (dict(crop=0), 'crop must be a positive integer'),
    (dict(crop=64), r'crop must fit into the images.* 32 x 42, got 64'),
    (dict(mean=[1, 2]), 'mean must be one number, or one for each of 3'),
    (dict(value=1), 'input of Pooled may have takes, mean, std, .*value'),
])
def test_rejects_inputs_of_networks(change, message):
    check(lambda: FeatureExtractor(
        Pooled(), input={**FRAMES, **change}).features([[IMAGE]]), message)


@pytest.mark.parametrize('options, message', [
    (dict(config=Pooled()), "may have takes, .*missing .*'takes', 'mean'"),
    (dict(config=Pooled(), input=CLIPS), 'clip_len .* is needed'),
    (dict(config=Pooled(), input=FRAMES, layer='head'),
     "of the network, got 'head'; linear layers are fc"),
    (dict(config=Pooled(), input=FRAMES, cfg_options={'a': 1}),
     'cfg_options are for recognizers'),
    (dict(config=Pooled(), input=FRAMES, sample_fps=0),
     'sample_fps must be a positive number'),
    (dict(config='os:getcwd', input=FRAMES),
     'os:getcwd must return an nn.Module, got a str'),
    (dict(config='no.such:thing', input=FRAMES),
     'must be MODULE:CALLABLE that can be imported: No module named'),
    (dict(config='linear_ff_tiny_motion', input=FRAMES),
     'input is not for recognizers'),
    (dict(config='hf://owner/model'), 'must be hf://OWNER/MODEL@REVISION'),
    (dict(config='tsn_bninception_flow', flow='raft'),
     "flow must be .*'farneback'.* got 'raft'"),
    (dict(config='tsn_bninception_flow', flow_side=0),
     'flow_side must be a positive number, got 0'),
])
def test_rejects_networks(options, message):
    check(FeatureExtractor, message, **options)


@pytest.mark.parametrize('kwargs, message', [
    (dict(config='linear_ff_tiny_motion', extractors=dict(rgb={})),
     'extractors is not an option of linear_ff_tiny_motion, .*LiveClipModel'),
    (dict(stride=0), 'stride is not an option of .*FeatureStreamModel; got 0'),
    *((dict(cfg_options=options), message) for options, message in (
        ({'test_dataloader.dataset.feature_rate': None,
          'test_dataloader.dataset.work_rate': None},
         'lacks feature_rate .* and work_rate'),
        ({'online.extractor': {}},
         'may have extractors and events .*got extractor'),
        ({'model.backbone.embed_dims': 32, 'model.cls_head.in_channels': 32},
         'detector.pth'),
        ({'test_dataloader.dataset.metainfo.classes': ['one', 'two']},
         'name the 4 classes of the model, got 2'))),
    (dict(extractors=dict(depth=dict(config='x'))),
     'extractors must be for the modalities rgb of the model, got depth'),
    (dict(extractors=dict(rgb=dict(checkpoint=None, cfg_options={
        'model.backbone.embed_dims': 48, 'model.cls_head.in_channels': 48,
        'model.backbone.num_frames': 2},
        layer='cls_head.fc_hidden'))),
     'extractors.rgb must give the 96 channels .* gives 48'),
    (dict(config='testra_tiny_synthetic', checkpoint=None),
     'extractors.rgb must name'),
    (dict(events=dict(on=2.)), '0 < off <= on <= 1'),
    # The source is opened first, because it fails most often.
    (dict(source='none.mp4', checkpoint='none'), 'none.mp4 does not exist'),
    (dict(source=None), 'source must be a video, a camera or a stream'),
    (dict(config='clips', cfg_options={'online.extractors': {}}),
     'may have .*seconds and stride'),
    (dict(config='clips', seconds=1, stride=2), 'stride must be .* 1 s, got 2')
], ids=str)
def test_rejects_detectors(files, clip_files, clip, tmp_path, kwargs, message):
    if kwargs.get('config') == 'clips':
        kwargs = dict(kwargs, config=clip_files[0], checkpoint=clip_files[1])
    check(OnlineDetector, message, **{
        **dict(config=files[0], checkpoint=files[1], source=clip,
               events_file=tmp_path / 'events.jsonl'), **kwargs})
    assert not (tmp_path / 'events.jsonl').exists()


@pytest.mark.parametrize('name, message', [
    ('none.mp4', r'source none.mp4 does not exist; a source is a video '
     r'file, a folder of frames, the number of a camera, or a URL \(rtsp'),
    ('97', 'cannot open camera 97: it does not exist'),
    ('http://user:secret@127.0.0.1:9/x', 'cannot open http://127.0.0.1:9/x:'),
    ('http://[::1/x', r'cannot open http://\[::1/x: Invalid IPv6'),
    ('ftp://user:secret@host/x', 'source ftp://host/x does not exist'),
    ('notes.mp4', 'cannot open notes.mp4 as a video'),
    ('cut.mp4', 'cannot open cut.mp4 as a video: .*incomplete'),
    ('nothing.mp4', 'cannot open nothing.mp4 as a video: .*is empty'),
    ('empty', 'no frames in the folder empty; .*.png'),
])
def test_rejects_sources(clip, name, message):
    Path('empty').mkdir()
    for path, data in (('notes', b'no video'), ('nothing', b''),
                       ('cut', clip.read_bytes()[:-9000])):
        Path(f'{path}.mp4').write_bytes(data)
    check(open_source, message, name)


def test_rejects_options(clip, tmp_path):
    cv2.imwrite(str(tmp_path / '1.png'), IMAGE)
    check(open_source, 'has its own rate', clip, fps=10)
    check(open_source, 'fps must be a positive number', tmp_path, fps=0)
    check(FrameFolder, 'fps must be a positive number, got 0', tmp_path, 0)
    check(LiveSource, 'fps must be a positive number .*got -1', 97, fps=-1)
    check(StepMaker, 'fps .* at least the 4 .*got 2', 2, 4, 0)
    check(SegmentSink, 'before must be', tmp_path, None, before=-1)
    check(SegmentSink, 'after must be', tmp_path, None, after=math.nan)
    for url in ('ftp://host/', 'host', 'http://u:secret@:80/',
                'http://host:port/', 'http://host/\x01'):
        check(WebhookSink, 'a webhook must be ', url, 'door')


def test_missing_libraries_are_named(monkeypatch):
    monkeypatch.delattr(cv2, 'optflow', raising=False)
    check(OpticalFlow, 'pip install opencv-contrib-python', 'tvl1')
    monkeypatch.setitem(sys.modules, 'httpx', None)
    check(WebhookSink, r'"mmvidattn\[webhook\]"', 'http://host/', 'door')


def test_page_for_other_machines_needs_a_token():
    pytest.importorskip('fastapi')
    from mmvidattn.live.server import LivePage, is_loopback
    for host in '127.0.0.1', '127.8.0.1', 'localhost', '::1':
        assert is_loopback(host)
    for host in '0.0.0.0', '::', '192.168.1.5', 'box':
        assert not is_loopback(host)
        check(LivePage, 'pass a token, or 127.0.0.1 as host',
              [FakeRun('clip', ['jump'])], host)
    # An environment variable may contain any bytes.
    check(LivePage, 'surrogates', [], token='\udcff')
