# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Run a live-detection service for long, inject faults, and check its events.

    python tools/soak/service.py --minutes 60
    python tools/soak/service.py --minutes 60 --rtsp FOLDER/node_modules

Four sources show colors for some seconds each, according to a plan: a camera
(MJPEG over HTTP), a folder, a named pipe (MPEG-TS by ffmpeg), and either RTSP
through npm's rtsp-streaming-server (``--rtsp``) or another camera. The model
classifies the colors. Sources are stopped and restarted with another size and
frame rate, the service is killed with SIGKILL and restarted, and its clock
jumps.

The soak exits with 1 unless each action that no fault overlaps has exactly
one start and one end in the events file, at the right time, and a clip. The
folder waits for the service, so all of its actions must be found. Memory,
file handles and threads of the service must stay flat.
"""
import argparse
import json
import os
import random
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request
from collections import Counter
from collections.abc import Callable, Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import cv2
import numpy as np
import torch
from torch import nn

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
from tools.harness import (
    ROOT,
    add_outputs,
    append_json,
    finish,
    parser_of,
    positive,
)

COLORS = dict(background=(128, 128, 128), red=(220, 40, 40),
              green=(40, 200, 40), blue=(40, 40, 220))
CLASSES = list(COLORS)
# Seconds between actions, and of an action.
PAUSE, ACTION = 3., 3.
PERIOD = PAUSE + ACTION
FOLDER_FPS = 12
# Largest accepted error of an event's time, in seconds, for a live source.
TOLERANCE = 1.5
# Seconds of a clip before and after its action.
MARGIN = 0.5
# Seconds after which growth of memory is judged: until then the encoders of
# clips and the allocator's pools are still growing.
SETTLED = 300.
# Number of parts of a process's life whose medians are reported.
PARTS = 12
CONFIG = '''
_base_ = ['{root}/configs/testra_tiny_videos.py']
model = dict(
    backbone=dict(in_channels=dict(_delete_=True, rgb=3), embed_dims=32,
                  num_heads=2, ffn_dims=32),
    cls_head=dict(num_classes={num}, in_channels=32))
test_dataloader = dict(dataset=dict(metainfo=dict(classes={classes})))
online = dict(
    _delete_=True,
    extractors=dict(rgb=dict(
        config='tools.soak.service:MeanColor',
        input=dict(takes='frames', mean=.5, std=.3))),
    events=dict(on=.6, off=.4, min_duration=1.))
'''


class MeanColor(nn.Module):
    """Network whose features are the mean color of an image."""

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        return images.mean(dim=(2, 3))


def color_at(seconds: float, source: int) -> str:
    """Return the color of a source at a time of its plan."""
    number, rest = divmod(seconds, PERIOD)
    if rest < PAUSE:
        return 'background'
    return CLASSES[1 + int(number + source) % (len(CLASSES) - 1)]


def picture(seconds: float, source: int, side: int = 64) -> np.ndarray:
    """Return the RGB image of a source at a time of its plan."""
    return np.full((side, side, 3), COLORS[color_at(seconds, source)],
                   np.uint8)


def make_model(folder: Path) -> tuple[Path, Path]:
    """Write a detector whose last layer is fitted to classify the colors.

    Returns:
        Config and checkpoint.
    """
    import mmvidattn
    from mmvidattn.online import StreamSession
    config = folder / 'colors.py'
    config.write_text(CONFIG.format(
        root=ROOT, num=len(CLASSES), classes=CLASSES))
    torch.manual_seed(0)
    model = mmvidattn.get_model(config)
    layer, inputs = model.cls_head.fc_cls, []
    hook = layer.register_forward_pre_hook(
        lambda _, args: inputs.append(args[0].reshape(-1, 32)[:1]))
    session = StreamSession(model, 1, 1)
    colors = torch.tensor(list(COLORS.values())) / 255
    # Each color lasts for several steps, as in the plan of the videos.
    labels = torch.randint(len(CLASSES), (300, )).repeat_interleave(
        torch.randint(1, 20, (300, )))
    for label in labels:
        x = colors[label] + 0.02 * torch.randn(3)
        session.push(dict(rgb=(x - .5) / .3))
    hook.remove()
    x = torch.cat(inputs)[-len(labels):].double()
    x = torch.cat([x, torch.ones(len(x), 1)], dim=1)
    logits = 8. * nn.functional.one_hot(labels, len(CLASSES)).double()
    weight = torch.linalg.solve(x.mT @ x + 1e-3 * torch.eye(33), x.mT @ logits)
    right = ((x @ weight).argmax(1) == labels).double().mean()
    if right < 0.99:
        raise SystemExit(f'the model classifies only {right:.3f} of the '
                         'colors, expected 0.99')
    with torch.no_grad():
        layer.weight.copy_(weight[:-1].mT)
        layer.bias.copy_(weight[-1])
    torch.save(dict(state_dict=model.state_dict()), folder / 'colors.pth')
    return config, folder / 'colors.pth'


def make_frames(folder: Path, seconds: float) -> Path:
    """Write a folder of frames that show plan 1 at ``FOLDER_FPS``."""
    frames = folder / 'frames'
    frames.mkdir()
    for color, value in COLORS.items():
        cv2.imwrite(str(folder / f'{color}.png'),
                    np.full((32, 32, 3), value[::-1], np.uint8))
    for i in range(int(seconds * FOLDER_FPS)):
        (frames / f'{i}.png').symlink_to(
            folder.absolute() / f'{color_at(i / FOLDER_FPS, 1)}.png')
    return frames


class PlannedSource:
    """Source that can be stopped and restarted.

    Args:
        number: Number of its plan.
        begun: Start time of its plan, by ``time.monotonic()``.
    """
    fps, side = 12, 64

    def __init__(self, number: int, begun: float) -> None:
        self.number, self.begun = number, begun
        self._stopped = threading.Event()

    def start(self) -> None:
        """Start sending frames."""

    def stop(self) -> None:
        """Stop sending frames."""

    def change(self) -> None:
        """Change size and frame rate from the next start on."""
        self.side = 96 if self.side == 64 else 64
        self.fps = 20 if self.fps == 12 else 12

    def image(self) -> np.ndarray:
        """Return the current image."""
        return picture(time.monotonic() - self.begun, self.number, self.side)


class Camera(PlannedSource):
    """MJPEG over HTTP."""
    port = 0

    def start(self) -> None:
        camera, stopped = self, threading.Event()
        self._stopped = stopped

        class Handler(BaseHTTPRequestHandler):

            def do_GET(self) -> None:
                self.send_response(200)
                self.send_header(
                    'Content-Type', 'multipart/x-mixed-replace; boundary=x')
                self.end_headers()
                while not stopped.wait(1 / camera.fps):
                    data = cv2.imencode('.jpg', camera.image()[..., ::-1])[1]
                    try:
                        self.wfile.write(
                            b'--x\r\nContent-Type: image/jpeg\r\n'
                            b'Content-Length: %d\r\n\r\n%s\r\n'
                            % (len(data), data.tobytes()))
                    except OSError:
                        return

            def log_message(self, *args: object) -> None:
                pass

        self._server = ThreadingHTTPServer(('127.0.0.1', self.port), Handler)
        self._server.daemon_threads = True
        self.port = self._server.server_port
        self.address = f'http://127.0.0.1:{self.port}/video.mjpg'
        threading.Thread(target=self._server.serve_forever, args=(0.05, ),
                         daemon=True).start()

    def stop(self) -> None:
        self._stopped.set()
        self._server.shutdown()
        self._server.server_close()


class Encoded(PlannedSource):
    """Video stream encoded by ffmpeg.

    Args:
        output: Output arguments of ffmpeg; the last is the destination.
        address: Address that the service reads.
    """

    def __init__(self, number: int, begun: float, output: list[str],
                 address: str) -> None:
        super().__init__(number, begun)
        self._output, self.address = output, address

    def start(self) -> None:
        stopped = self._stopped = threading.Event()
        self._process = subprocess.Popen(
            ['ffmpeg', '-y', '-loglevel', 'quiet', '-f', 'rawvideo',
             '-pix_fmt', 'rgb24', '-s', f'{self.side}x{self.side}',
             '-r', str(self.fps), '-i', '-', '-pix_fmt', 'yuv420p',
             *self._output], stdin=subprocess.PIPE)
        threading.Thread(
            target=self._feed, args=(stopped, self._process.stdin),
            daemon=True).start()

    def _feed(self, stopped: threading.Event, pipe) -> None:
        following, step = time.monotonic(), 1 / self.fps
        while not stopped.wait(max(0, following - time.monotonic())):
            try:
                pipe.write(self.image().tobytes())
                pipe.flush()
            except (OSError, ValueError):
                return
            # After a delay, skip frames instead of sending a burst.
            following = max(following + step, time.monotonic())

    def stop(self) -> None:
        self._stopped.set()
        self._process.kill()
        self._process.wait()


class Rtsp(Encoded):
    """RTSP stream with its own server, npm's rtsp-streaming-server.

    Args:
        modules: Folder ``node_modules`` that has the server.
        ports: Two free ports.
    """

    def __init__(self, number: int, begun: float, modules: str,
                 ports: list[int]) -> None:
        publish, play = ports
        self._modules, self._script = modules, (
            "const S = require('rtsp-streaming-server').default;"
            f'new S({{serverPort: {publish}, clientPort: {play}, '
            'rtpPortStart: %d, rtpPortCount: 100}).start();')
        super().__init__(
            number, begun, ['-c:v', 'libx264', '-preset', 'ultrafast', '-tune',
                            'zerolatency', '-g', '6', '-f', 'rtsp',
                            f'rtsp://127.0.0.1:{publish}/camera'],
            f'rtsp://127.0.0.1:{play}/camera')

    def start(self) -> None:
        self._server = subprocess.Popen(
            ['node', '-e', self._script % random.randrange(20000, 30000, 100)],
            env=dict(os.environ, NODE_PATH=self._modules),
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        time.sleep(3)
        super().start()

    def stop(self) -> None:
        super().stop()
        self._server.kill()
        self._server.wait()


class Service:
    """Process of the service, its page, and its files.

    Args:
        folder: Working folder.
        sources: Addresses of the sources.
        model: Config and checkpoint.
        port: Port of the page.
        options: Further options of ``stream.py``.
    """

    def __init__(self, folder: Path, sources: list[str],
                 model: tuple[Path, Path], port: int,
                 options: Sequence[str] = ()) -> None:
        self.folder, self.port = folder, port
        self._skew = folder / 'skew'
        self.jump(0.)
        # Only the clock of this process jumps.
        wrapper = (
            'import sys, time, pathlib; real = time.time; '
            'skew = pathlib.Path(sys.argv.pop(1)); '
            'time.time = lambda: real() + float(skew.read_text()); '
            'from mmvidattn.cli.stream import main; main(sys.argv[1:])')
        self._command = [
            sys.executable, '-c', wrapper, str(self._skew), *sources,
            *map(str, model), '--realtime', '--serve', '--port', str(port),
            '--fps', str(FOLDER_FPS), '--events', str(folder / 'events.jsonl'),
            '--state', str(folder / 'state'), '--state-seconds', '2',
            *options]
        self._env = dict(
            os.environ, OMP_NUM_THREADS='1', PYTHONUNBUFFERED='1',
            OPENCV_FFMPEG_CAPTURE_OPTIONS='rtsp_transport;udp',
            PYTHONPATH=os.pathsep.join(
                [str(ROOT), os.environ.get('PYTHONPATH', '')]))

    def start(self) -> None:
        """Start the service, or restart it."""
        with open(self.folder / 'service.log', 'a') as log:
            self.process = subprocess.Popen(
                self._command, env=self._env, stdout=log,
                stderr=subprocess.STDOUT)

    def jump(self, seconds: float) -> None:
        """Set the service's clock, relative to the machine's."""
        part = self._skew.with_suffix('.part')
        part.write_text(str(seconds))
        os.replace(part, self._skew)

    def stop(self) -> None:
        """Stop the service if it is running."""
        self.process.terminate()
        try:
            self.process.wait(30)
        except subprocess.TimeoutExpired:
            self.process.kill()

    def is_ready(self) -> bool:
        """Return True if all sources are connected and have scores."""
        try:
            with urllib.request.urlopen(
                    f'http://127.0.0.1:{self.port}/readyz', timeout=5):
                return True
        except OSError:
            return False

    def usage(self) -> tuple[float, int, int, float]:
        """Return the use of memory in MiB, handles, threads and CPU seconds.

        Raises:
            OSError: If the service is not running.
        """
        proc = Path(f'/proc/{self.process.pid}')
        status = (proc / 'status').read_text()
        match = re.search(r'VmRSS:\s+(\d+)', status)
        if not match:
            raise ProcessLookupError('the service was killed')
        memory = int(match[1]) / 1024
        threads = int(re.search(r'Threads:\s+(\d+)', status)[1])
        # User and system time, after the name, which may have spaces.
        words = (proc / 'stat').read_text().rpartition(')')[2].split()
        cpu = sum(map(int, words[11:13])) / os.sysconf('SC_CLK_TCK')
        return memory, len(list((proc / 'fd').iterdir())), threads, cpu

    def events(self, source: int, start: int = 0) -> tuple[list[dict], int]:
        """Read the complete lines of a source's events file.

        Args:
            source: Number of the source.
            start: Byte to start at. Defaults to 0.

        Returns:
            Events, and the byte after the last of them.
        """
        path = self.folder / f'events_{source + 1}.jsonl'
        if not path.exists():
            return [], start
        with open(path, 'rb') as file:
            file.seek(start)
            data = file.read()
        data = data[:data.rfind(b'\n') + 1]
        return [json.loads(line) for line in data.splitlines()], (
            start + len(data))

    def has_clip(self, source: int, event: dict) -> bool:
        """Return True if there is a clip for an event that ends an action."""
        return (self.folder / f'clips_{source + 1}' /
                f'{event["start_id"]:06d}.mp4').exists()


class Watch(threading.Thread):
    """Record the arrival times of events, and the usage of the service."""

    def __init__(self, service: Service, sources: list[int]) -> None:
        super().__init__(daemon=True)
        self._service = service
        # Bytes of each events file that were read.
        self._read = dict.fromkeys(sources, 0)
        # Arrival times by source and id of the event.
        self.arrived: dict[tuple[int, int], float] = {}
        # Times and usage by process.
        self.usage: dict[int, list[tuple]] = {}
        self.done = threading.Event()

    def run(self) -> None:
        count = 0
        while not self.done.wait(0.1):
            now = time.monotonic()
            for source, start in self._read.items():
                # The events files of live sources only grow.
                events, self._read[source] = self._service.events(
                    source, start)
                for event in events:
                    self.arrived.setdefault((source, event['id']), now)
            count += 1
            # Skip the start-up.
            if count % 20 == 0 and self._service.is_ready():
                try:
                    usage = self._service.usage()
                except OSError:
                    continue
                self.usage.setdefault(self._service.process.pid, []).append(
                    (now, *usage))


def wait_until(true: Callable[[], bool], seconds: float = 180.) -> None:
    end = time.monotonic() + seconds
    while not true():
        if time.monotonic() > end:
            raise SystemExit(f'the service was not ready after {seconds:g} s')
        time.sleep(0.2)


def plan_of(source: int, seconds: float) -> list[tuple[str, float, float]]:
    """Return class, start and end of each action that ends by `seconds`."""
    return [(color_at(i * PERIOD + PAUSE, source), i * PERIOD + PAUSE,
             (i + 1) * PERIOD) for i in range(int(seconds / PERIOD))]


def check_numbers(events: list[dict]) -> list[str]:
    """Check that ids are consecutive, and that each end follows its start."""
    wrong = []
    if [event['id'] for event in events] != list(range(len(events))):
        wrong.append('event ids are not consecutive')
    started: dict[str, int] = {}
    for event in events:
        if event['event'] == 'start':
            if started.setdefault(event['class'], event['id']) != event['id']:
                wrong.append(f'{event} starts an action in progress')
        elif started.pop(event['class'], None) != event['start_id']:
            wrong.append(f'{event} ends an action that had not started')
    return wrong


def touches(faults: list[tuple[float, float]], start: float,
            end: float) -> bool:
    """Return True if a fault overlaps the time from `start` to `end`."""
    return any(start < b and end > a for a, b in faults)


def compare(events: list[tuple[str, str, float]],
            plan: list[tuple[str, float, float]],
            faults: list[tuple[float, float]], first: float, last: float,
            tolerance: float) -> tuple[int, list[str]]:
    """Compare events (kind, class, time) with a plan from `first` to `last`.

    Returns:
        Number of compared actions, and failures.
    """
    wrong, compared, known = [], 0, set()

    def is_touched(start: float, end: float) -> bool:
        return touches(faults, start - tolerance, end + tolerance)

    for name, start, end in plan:
        if start < first + tolerance or end > last - 3 * tolerance or (
                is_touched(start, end)):
            continue
        compared += 1
        for kind, at in ('start', start), ('end', end):
            matches = [i for i, event in enumerate(events)
                       if event[:2] == (kind, name)
                       and abs(event[2] - at) <= tolerance]
            known.update(matches)
            if len(matches) != 1:
                wrong.append(f'{name} at {at:.2f} s has {len(matches)} {kind} '
                             'events')
    for i, (kind, name, at) in enumerate(events):
        # Near faults and the ends, actions were not compared.
        if i not in known and first + PERIOD < at < last - 2 * PERIOD and (
                not is_touched(at - PERIOD, at + PERIOD)):
            wrong.append(f'{kind} of {name} at {at:.2f} s is not in the plan')
    return compared, wrong


def compare_frames(events: list[dict]) -> tuple[int, list[str]]:
    """Compare the events of :func:`make_frames` with their plan."""
    timed = [(event['event'], event['class'], event[event['event']])
             for event in events]
    done = events[-1]['time'] if events else 0.
    return compare(timed, plan_of(1, done), [], 0., done, 0.6)


def may_grow(memory: float) -> float:
    """Return the accepted growth in MiB."""
    return 0.03 * memory + 5


def check_usage(usage: dict[int, list[tuple]]
                ) -> tuple[str, dict[str, object], list[str]]:
    """Check that the resources of the service stay flat.

    Compare the last third of the longest-running process with its second
    third.

    Returns:
        Summary, figures and failures. Memory is not judged if the process ran
        for less than :data:`SETTLED` seconds.
    """
    rows = np.array(max(usage.values(), key=len), float)
    seconds, cpu = rows[-1, [0, 4]] - rows[0, [0, 4]]
    second, third = np.array_split(rows[:, 1:4], 3)[1:]
    before, after = np.median(second, axis=0), np.median(third, axis=0)
    wrong = [
        f'{name} grew from {a:.0f} to {b:.0f}' for name, a, b, allowed in zip(
            ('memory (MiB)', 'handles', 'threads'), before, after,
            (may_grow(before[0]) if seconds >= SETTLED else np.inf, 1, 1))
        if b > a + allowed]
    text = (f'{seconds:.0f} s: memory {before[0]:.0f}, {after[0]:.0f} MiB; '
            f'handles {before[1]:.0f}, {after[1]:.0f}; threads '
            f'{before[2]:.0f}, {after[2]:.0f}; {cpu / seconds:.2f} cores')
    parts = np.array_split(rows, min(PARTS, len(rows)))
    figures = dict(seconds=round(seconds), cores=round(cpu / seconds, 3), **{
        name: [round(float(np.median(part[:, i])), digits) for part in parts]
        for i, name, digits in ((1, 'memory_mib', 1), (2, 'handles', 0),
                                (3, 'threads', 0))})
    return text, figures, wrong


def free_ports(number: int) -> list[int]:
    servers = [ThreadingHTTPServer(('127.0.0.1', 0), BaseHTTPRequestHandler)
               for _ in range(number)]
    ports = [server.server_port for server in servers]
    for server in servers:
        server.server_close()
    return ports


def run(args: argparse.Namespace, folder: Path) -> list[str]:
    """Run the soak in a folder, and return its failures."""
    # 1. Start the sources.
    draw, seconds = random.Random(args.seed), 60 * args.minutes
    model = make_model(folder)
    # The stream is 3 minutes longer than the run, because the last fault may
    # end after `seconds`.
    frames = make_frames(folder, seconds + 180)
    begun = time.monotonic()
    port, *ports = free_ports(3)
    pipe = folder / 'pipe'
    os.mkfifo(pipe)
    cameras = {
        0: Camera(0, begun),
        2: Encoded(2, begun, ['-c:v', 'mpeg2video', '-f', 'mpegts', str(pipe)],
                   str(pipe))}
    cameras[3] = Rtsp(3, begun, args.rtsp, ports) if args.rtsp else Camera(
        3, begun)
    for camera in cameras.values():
        camera.start()
    time.sleep(3)
    # 2. Start the service.
    addresses = [cameras[i].address if i in cameras else str(frames)
                 for i in range(4)]
    service = Service(folder, addresses, model, port, [
        '--segments', str(folder / 'clips'),
        '--segment-margin', str(MARGIN), str(MARGIN),
        # The frame buffer is full within a minute, and stops growing.
        '--segment-mb', '0.5'])
    watch = Watch(service, list(cameras))
    faults: dict[int, list[tuple[float, float]]] = {i: [] for i in cameras}
    counts: Counter[str] = Counter()
    try:
        service.start()
        wait_until(service.is_ready)
        watch.start()
        first = time.monotonic() - begun
        print(f'ready after {first:.0f} s', flush=True)

        def fault(kind: str) -> None:
            start = time.monotonic() - begun
            touched = list(cameras)
            if kind == 'kill':
                service.process.kill()
                service.process.wait()
                service.jump(draw.choice([-3600., 0., 7200.]))
                # ffmpeg exits when the pipe loses its reader.
                cameras[2].stop()
                cameras[2].start()
                service.start()
            elif kind == 'jump':
                service.jump(draw.choice([-86400., 86400.]))
                touched = []
            else:
                touched = [touched[sum(counts.values()) // 2 % len(touched)]]
                camera = cameras[touched[0]]
                camera.stop()
                time.sleep(draw.uniform(1, 8))
                if kind == 'change':
                    camera.change()
                camera.start()
                # The service must have time to notice the loss.
                time.sleep(6)
            wait_until(service.is_ready)
            counts[kind] += 1
            for source in touched:
                faults[source].append(
                    (start, time.monotonic() - begun + 2))
            print(f'{start:.0f} s: {kind} {touched}', flush=True)

        # 3. Inject faults. Kill only in the first half, so that the last
        # process runs for long.
        end = begun + first + seconds
        kinds = ['lose', 'kill', 'change', 'jump']
        while time.monotonic() < end:
            time.sleep(draw.uniform(0.5, 1.5) * args.pause)
            kind = kinds[sum(counts.values()) % len(kinds)]
            if kind == 'kill' and (
                    time.monotonic() - begun > first + seconds / 2):
                kind = 'lose'
            fault(kind)
        time.sleep(3 * PERIOD)
        last = time.monotonic() - begun
        watch.done.set()
        watch.join()
    finally:
        service.stop()
        for camera in cameras.values():
            camera.stop()
    # 4. Check. The log reports dropped steps: on a machine that is too slow,
    # events are late.
    for line in (folder / 'service.log').read_text().splitlines()[-4:]:
        print(line.partition(';')[0])
    wrong, rows = [], []
    for source in range(4):
        events, _ = service.events(source)
        wrong += [f'source {source}: {line}' for line in check_numbers(events)]
        if source in cameras:
            # Convert to times of the plan by the arrival of the event.
            events = [event for event in events
                      if (source, event['id']) in watch.arrived]
            timed = [
                (event['event'], event['class'],
                 watch.arrived[source, event['id']] - begun - event['time'] +
                 event[event['event']]) for event in events]
            compared, lines = compare(
                timed, plan_of(source, last), faults[source], first, last,
                TOLERANCE)
            due = [event for event, (kind, _, at) in zip(events, timed)
                   if kind == 'end' and at < last - PERIOD and not touches(
                       faults[source], at, at + PERIOD)]
            lines += [f'the clip of {event} is missing' for event in due
                      if not service.has_clip(source, event)]
        else:
            compared, lines = compare_frames(events)
        print(f'source {source}: {len(events)} events, {compared} actions '
              f'compared, {len(lines)} wrong', flush=True)
        rows.append(dict(events=len(events), compared=compared,
                         wrong=len(lines)))
        wrong += [f'source {source}: {line}' for line in lines]
        if not compared:
            wrong.append(f'source {source}: nothing was compared')
    text, usage, lines = check_usage(watch.usage)
    print(f'{last - first:.0f} s, faults {dict(counts)}; longest process '
          f'{text}')
    wrong += lines
    append_json(args.out, dict(
        seconds=round(last - first), rtsp=bool(args.rtsp),
        faults=dict(counts), sources=rows, process=usage, wrong=wrong))
    return wrong


def run_in_folder(run: Callable[[argparse.Namespace, Path], list[str]],
                  args: argparse.Namespace,
                  folder: Path | None = None) -> None:
    """Run a soak in a folder, and exit with 1 if it has failures."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as temporary:
        folder = folder or Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        wrong = run(args, folder)
    finish(wrong)


def main() -> None:
    parser = parser_of(__doc__)
    parser.add_argument('--minutes', type=positive, default=60.)
    parser.add_argument(
        '--pause', type=positive, default=20.,
        help='mean seconds between faults (default: 20)')
    parser.add_argument(
        '--rtsp', metavar='NODE_MODULES',
        default=os.environ.get('MMVIDATTN_NODE_MODULES'),
        help='folder in which npm has installed rtsp-streaming-server '
        '(default: $MMVIDATTN_NODE_MODULES)')
    parser.add_argument('--seed', type=int, default=0)
    add_outputs(parser)
    args = parser.parse_args()
    run_in_folder(run, args, args.folder)


if __name__ == '__main__':
    main()
