# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Tiny clips, web servers and detectors for tests of live detection."""
import json
import threading
import time
from contextlib import closing
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import cv2
import numpy as np
import pytest
import torch
from made_videos import write_opencv

import mmvidattn
from mmvidattn.live import EventDetector, StreamRun
from mmvidattn.live.run_files import EventLog
from mmvidattn.sources import Frame, Source

ROOT = Path(__file__).resolve().parents[1]
CLASSES = 'background', 'jump', 'run', 'swim'
TSN = '''
default_scope = 'mmaction'
model = dict(
    type='Recognizer2D',
    backbone=dict(type='ResNet', depth=18, in_channels={channels}),
    cls_head=dict(type='TSNHead', num_classes=4, in_channels=512),
    data_preprocessor=dict(
        type='ActionDataPreprocessor', mean=[{mean}], std=[{std}],
        format_shape='NCHW'))
test_pipeline = [
    dict(type='DecordInit'),
    dict(type='SampleFrames', clip_len={clip_len}, frame_interval=1,
         num_clips=25, test_mode=True),
    dict(type='DecordDecode'),
    dict(type='Resize', scale=(-1, 64)),
    dict(type='CenterCrop', crop_size=64),
    dict(type='FormatShape', input_format='NCHW'),
    dict(type='PackActionInputs')]
'''


# Inputs of `Pooled`.
FRAMES = dict(takes='frames', mean=0.5, std=0.25, resize=32)
CLIPS = dict(FRAMES, takes='clips')


class Pooled(torch.nn.Module):
    """Mean of each channel, and a classifier."""

    def __init__(self):
        super().__init__()
        self.fc = torch.nn.Linear(3, 2)

    def forward(self, x):
        return self.fc(x.flatten(2).mean(-1))


def make_images(num, side=64):
    """Make images of a moving texture that gets brighter."""
    noise = np.random.default_rng(0).integers(0, 60, (8, 8, 3))
    noise = cv2.resize(noise.astype(np.uint8), (side, side))
    return [np.roll(noise, 3 * t, axis=1) + np.uint8(8 * (t % 24))
            for t in range(num)]


def write_clip(path, num=84):
    """Write a video of 7 seconds at 12 frames per second."""
    return write_opencv(path, make_images(num), 12)


@pytest.fixture(scope='session')
def clip(tmp_path_factory):
    return write_clip(tmp_path_factory.mktemp('clip') / 'clip.mp4')


@pytest.fixture(scope='session')
def broken_clip(clip):
    """The same video with noise in its last quarter."""
    data = bytearray(clip.read_bytes())
    end = data.index(b'moov') - 4
    length = (end - data.index(b'mdat')) // 4
    data[end - length:end] = np.random.default_rng(0).bytes(length)
    path = clip.with_name('broken.mp4')
    path.write_bytes(data)
    return path


def noise(index):
    """Make noise that is brighter or darker for ten frames each."""
    rng = np.random.default_rng(index)
    level = np.random.default_rng(index // 10).integers(0, 200)
    return (rng.integers(0, 50, (64, 64, 3)) + level).astype(np.uint8)


class Script(Source):
    """Source of frames with given indices, with a wait before each."""

    def __init__(self, indices, live=False, wait=0., error=None):
        super().__init__('script', 12, live)
        self.indices, self.wait, self.error = indices, wait, error

    def _frames(self):
        for i in self.indices:
            time.sleep(self.wait)
            yield Frame(noise(i), i, 0., time.monotonic())
        if self.error:
            raise self.error


class Hanging(Script):
    """Source that hangs after its frames, even if it is stopped."""

    def __init__(self, indices):
        super().__init__(indices)
        self.released = threading.Event()
        self.has_returned = False

    def _frames(self):
        yield from super()._frames()
        self.released.wait(60)
        self.has_returned = True


class FakeRun:
    """The parts of a run that the page reads."""
    rate = 4.
    ignore = {0}
    top_actions = StreamRun.top_actions

    def __init__(self, name, classes, **options):
        self.name, self.classes = name, classes
        self.status = 'running'
        self.events = EventLog()
        self.event_detector = EventDetector(classes, **options)

    def report(self):
        return dict(name=self.name, status=self.status, rate=self.rate,
                    steps=1, dropped=0, missing=0, lost={}, latency={})


class QuietHandler(BaseHTTPRequestHandler):
    """Handler that logs nothing."""

    def log_message(self, *args):
        pass


def serve(handler, port=0):
    """Start a local web server in a thread."""
    server = ThreadingHTTPServer(('127.0.0.1', port), handler)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, args=(0.05, ),
                     daemon=True).start()
    return server


def close(server):
    """Stop a web server of :func:`serve`."""
    server.shutdown()
    server.server_close()


class Camera:
    """Network camera (MJPEG over HTTP) that can be switched off and on.

    After ``num`` pictures it is silent.
    """

    def __init__(self, fps=12, num=10 ** 6):
        images = [cv2.imencode('.jpg', image)[1].tobytes()
                  for image in make_images(48)]
        self.gone = threading.Event()
        self.numbers = iter(range(num))
        self.port = 0
        camera = self

        class Handler(QuietHandler):

            def do_GET(self):
                self.send_response(200)
                self.send_header(
                    'Content-Type', 'multipart/x-mixed-replace; boundary=x')
                self.end_headers()
                for i in camera.numbers:
                    if camera.gone.wait(1 / fps):
                        return
                    data = images[i % len(images)]
                    try:
                        self.wfile.write(
                            b'--x\r\nContent-Type: image/jpeg\r\n'
                            b'Content-Length: %d\r\n\r\n%s\r\n'
                            % (len(data), data))
                    except OSError:
                        return
                camera.gone.wait()

        self._handler = Handler
        self.switch_on()

    def switch_on(self):
        self.gone.clear()
        self._server = serve(self._handler, self.port)
        self.port = self._server.server_port

    def switch_off(self):
        self.gone.set()
        close(self._server)

    @property
    def url(self):
        return f'http://user:secret@127.0.0.1:{self.port}/video.mjpg'


@pytest.fixture
def camera():
    camera = Camera()
    yield camera
    camera.switch_off()


class Hook:
    """Web server that records requests, and sends ``files``.

    The server answers a POST with the first item of ``answers`` and removes
    it. An item is a status and headers, or the bytes of a response. Without
    items, the status is 204. A file breaks off after ``bytes_sent``.
    """

    def __init__(self):
        self.found, self.answers, self.files, site = [], [], {}, self
        self.bytes_sent = 10 ** 9

        class Handler(QuietHandler):

            def do_POST(self):
                length = int(self.headers['Content-Length'])
                data = self.rfile.read(length)
                if len(data) < length:
                    # The client was killed while sending.
                    return
                site.found.append((self.path, dict(self.headers), data))
                answer = site.answers.pop(0) if site.answers else (204, {})
                if isinstance(answer, bytes):
                    self.wfile.write(answer)
                    return
                self.send_response(answer[0])
                for name, value in answer[1].items():
                    self.send_header(name, value)
                self.end_headers()

            def do_GET(self):
                site.found.append((self.path, dict(self.headers), b''))
                data = site.files.get(self.path.partition('?')[0], b'')
                self.send_response(200)
                self.send_header('Content-Length', str(len(data)))
                self.end_headers()
                self.wfile.write(data[:site.bytes_sent])

        self._server = serve(Handler)
        self.host = f'127.0.0.1:{self._server.server_port}'
        self.url = f'http://user:secret@{self.host}'

    @property
    def events(self):
        return [json.loads(data) for _, _, data in self.found]

    def headers(self, name):
        return [headers[name] for _, headers, _ in self.found]

    def close(self):
        close(self._server)


@pytest.fixture
def web():
    with closing(Hook()) as web:
        yield web


def wait_until(condition):
    """Wait until a condition holds, and return its value.

    If it never does, the time limit of conftest.py ends the test.
    """
    while not (found := condition()):
        time.sleep(0.02)
    return found


def write_tsn(path, flow):
    """Write the config of a recognizer of frames or of optical flow."""
    channels, clip_len = (10, 5) if flow else (3, 1)
    path.write_text(TSN.format(
        channels=channels, clip_len=clip_len,
        mean='128, ' * channels, std='50, ' * channels))
    return path


def write_config(folder):
    """Write the config of a tiny detector on features of a recognizer."""
    text = f'''
_base_ = ['{ROOT}/configs/testra_tiny_videos.py']
model = dict(
    backbone=dict(
        embed_dims=16, num_heads=2, ffn_dims=16, num_anticipation_tokens=2),
    cls_head=dict(num_classes={len(CLASSES)}, in_channels=16))
test_dataloader = dict(dataset=dict(metainfo=dict(classes={CLASSES})))
online = dict(
    extractors=dict(rgb=dict(
        config='linear_ff_tiny_motion',
        checkpoint='{folder}/recognizer.pth',
        clip_len=2, cfg_options={{'model.backbone.num_frames': 2}})),
    events=dict(on=.3, off=.2, min_duration=.25))
'''
    path = folder / 'detector.py'
    path.write_text(text)
    return path


@pytest.fixture(scope='session')
def files(tmp_path_factory):
    """Config and checkpoint of a detector."""
    folder = tmp_path_factory.mktemp('detector')
    torch.manual_seed(0)
    recognizer = mmvidattn.get_model(
        'linear_ff_tiny_motion', cfg_options={'model.backbone.num_frames': 2})
    torch.save(dict(state_dict=recognizer.state_dict()),
               folder / 'recognizer.pth')
    config = write_config(folder)
    model = mmvidattn.get_model(config)
    # The scores of a model with default weights hardly depend on the video.
    torch.nn.init.normal_(model.cls_head.fc_cls.weight, std=.5)
    for weight in model.backbone.work_projection.parameters():
        torch.nn.init.normal_(weight, std=0.3)
    torch.save(dict(state_dict=model.state_dict()), folder / 'detector.pth')
    return config, folder / 'detector.pth'


@pytest.fixture(scope='session')
def clip_files(tmp_path_factory):
    """Config and checkpoint of a recognizer on windows of 2 seconds."""
    folder = tmp_path_factory.mktemp('recognizer')
    classes = 'up', 'down', 'left', 'right', 'in', 'out', 'round', 'still'
    config = folder / 'recognizer.py'
    config.write_text(f'''
_base_ = '{ROOT}/configs/vivit_tiny_fact_encoder_motion.py'
model = dict(
    backbone=dict(embed_dims=24, num_layers=1), cls_head=dict(in_channels=24))
test_dataloader = dict(dataset=dict(
    metainfo=dict(classes={classes}),
    pipeline=[
        dict(type='DecordInit'),
        dict(type='SampleFrames', clip_len=8, frame_interval=3,
             num_clips=1, test_mode=True),
        dict(type='DecordDecode'),
        dict(type='Resize', scale=(64, 64), keep_ratio=False),
        dict(type='FormatShape', input_format='NCTHW'),
        dict(type='PackActionInputs')]))
online = dict(
    seconds=2, stride=.5, events=dict(on=.3, off=.2, min_duration=.25))
''')
    torch.manual_seed(0)
    model = mmvidattn.get_model(config)
    for p in model.parameters():
        torch.nn.init.normal_(p, p.mean().item(), .1)
    torch.nn.init.normal_(model.cls_head.fc_cls.weight, std=.5)
    torch.save(dict(state_dict=model.state_dict()), folder / 'model.pth')
    return config, folder / 'model.pth'
