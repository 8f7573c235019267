# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Run a service of live detection for long, with faults, and check its events.

    python tools/soak/service.py --minutes 60
    python tools/soak/service.py --minutes 60 --rtsp FOLDER/node_modules

Four sources show colors by a plan, each for some seconds: a camera (MJPEG over
HTTP), a folder, a named pipe (MPEG-TS by ffmpeg) and RTSP, through npm's
rtsp-streaming-server where ``--rtsp`` says that it is; else another camera.
The model tells the colors apart. Sources are taken away and brought back with
another size and frame rate, the service is killed with SIGKILL and started
again, and its clock jumps. An action that no fault has touched must have
exactly one start and one end in the file of events, at its time, and its clip;
the folder's, which waits for the service, all of them. Memory, handles and
threads of the service must stay flat. Ends with 1 if any is not so.
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
from tools.harness import ROOT, append_json, finish, parser_of, positive

COLORS = dict(background=(128, 128, 128), red=(220, 40, 40),
              green=(40, 200, 40), blue=(40, 40, 220))
CLASSES = list(COLORS)
# Seconds without an action, and of one.
PAUSE, ACTION = 3., 3.
PERIOD = PAUSE + ACTION
FOLDER_FPS = 12
# Seconds that the time of an event may be off, of a live source.
TOLERANCE = 1.5
# Seconds of a clip before and after its action.
MARGIN = 0.5
# Seconds that a process must live to tell whether its memory grows: until then
# the encoders of clips and the allocator's pools take what they need.
SETTLED = 300.
# Parts of a process's life, of which the medians are told.
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
    """A network whose features are the mean color of an image."""

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        return images.mean(dim=(2, 3))


def color_at(seconds: float, source: int) -> str:
    """What a source shows at a time of its plan."""
    number, rest = divmod(seconds, PERIOD)
    if rest < PAUSE:
        return 'background'
    return CLASSES[1 + int(number + source) % (len(CLASSES) - 1)]


def picture(seconds: float, source: int, side: int = 64) -> np.ndarray:
    """An image of the plan, RGB."""
    return np.full((side, side, 3), COLORS[color_at(seconds, source)],
                   np.uint8)


def make_model(folder: Path) -> tuple[Path, Path]:
    """A detector whose last layer is fitted to tell the colors apart."""
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
    # Runs of a color, as in the plan.
    labels = torch.randint(len(CLASSES), (300, )).repeat_interleave(
        torch.randint(1, 20, (300, )))
    for label in labels:
        x = colors[label] + 0.02 * torch.randn(3)
        session.push(dict(rgb=(x - .5) / .3))
    hook.remove()
    x = torch.cat(inputs)[-len(labels):].double()
    x = torch.cat([x, torch.ones(len(x), 1)], dim=1)
    wanted = 8. * nn.functional.one_hot(labels, len(CLASSES)).double()
    weight = torch.linalg.solve(x.mT @ x + 1e-3 * torch.eye(33), x.mT @ wanted)
    right = ((x @ weight).argmax(1) == labels).double().mean()
    if right < 0.99:
        raise SystemExit(f'the model tells only {right:.3f} of the colors')
    with torch.no_grad():
        layer.weight.copy_(weight[:-1].mT)
        layer.bias.copy_(weight[-1])
    torch.save(dict(state_dict=model.state_dict()), folder / 'colors.pth')
    return config, folder / 'colors.pth'


def make_frames(folder: Path, seconds: float) -> Path:
    """A folder of frames that show plan 1, at ``FOLDER_FPS``."""
    frames = folder / 'frames'
    frames.mkdir()
    for color, value in COLORS.items():
        cv2.imwrite(str(folder / f'{color}.png'),
                    np.full((32, 32, 3), value[::-1], np.uint8))
    for i in range(int(seconds * FOLDER_FPS)):
        (frames / f'{i}.png').symlink_to(
            folder.absolute() / f'{color_at(i / FOLDER_FPS, 1)}.png')
    return frames


class Shown:
    """A source that can be taken away and brought back.

    Args:
        number: Which of the plans it shows.
        begun: When its plan begins, by ``time.monotonic()``.
    """
    fps, side = 12, 64

    def __init__(self, number: int, begun: float) -> None:
        self.number, self.begun = number, begun
        self._gone = threading.Event()

    def start(self) -> None:
        """Begin to show it."""

    def stop(self) -> None:
        """Take it away."""

    def change(self) -> None:
        """Another size and frame rate, from the next start on."""
        self.side = 96 if self.side == 64 else 64
        self.fps = 20 if self.fps == 12 else 12

    def image(self) -> np.ndarray:
        """What it shows now."""
        return picture(time.monotonic() - self.begun, self.number, self.side)


class Camera(Shown):
    """MJPEG over HTTP."""
    port = 0

    def start(self) -> None:
        camera, gone = self, threading.Event()
        self._gone = gone

        class Handler(BaseHTTPRequestHandler):

            def do_GET(self) -> None:
                self.send_response(200)
                self.send_header(
                    'Content-Type', 'multipart/x-mixed-replace; boundary=x')
                self.end_headers()
                while not gone.wait(1 / camera.fps):
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
        self._gone.set()
        self._server.shutdown()
        self._server.server_close()


class Encoded(Shown):
    """What ffmpeg makes of it.

    Args:
        output: Arguments of ffmpeg behind the input; the last is where to.
        address: Where the service reads it.
    """

    def __init__(self, number: int, begun: float, output: list[str],
                 address: str) -> None:
        super().__init__(number, begun)
        self._output, self.address = output, address

    def start(self) -> None:
        gone = self._gone = threading.Event()
        self._process = subprocess.Popen(
            ['ffmpeg', '-y', '-loglevel', 'quiet', '-f', 'rawvideo',
             '-pix_fmt', 'rgb24', '-s', f'{self.side}x{self.side}',
             '-r', str(self.fps), '-i', '-', '-pix_fmt', 'yuv420p',
             *self._output], stdin=subprocess.PIPE)
        threading.Thread(target=self._feed, args=(gone, self._process.stdin),
                         daemon=True).start()

    def _feed(self, gone: threading.Event, pipe) -> None:
        following, step = time.monotonic(), 1 / self.fps
        while not gone.wait(max(0, following - time.monotonic())):
            try:
                pipe.write(self.image().tobytes())
                pipe.flush()
            except (OSError, ValueError):
                return
            # Not several at once after it was kept waiting.
            following = max(following + step, time.monotonic())

    def stop(self) -> None:
        self._gone.set()
        self._process.kill()
        self._process.wait()


class Rtsp(Encoded):
    """RTSP, by a server (npm's rtsp-streaming-server) of its own.

    Args:
        modules: The ``node_modules`` that has the server.
        ports: Two free ones.
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
    """The program, its page, and what it has written.

    Args:
        folder: Where it works.
        sources: What it reads.
        model: Config and checkpoint.
        port: Of its page.
        options: More of ``stream.py``.
    """

    def __init__(self, folder: Path, sources: list[str],
                 model: tuple[Path, Path], port: int,
                 options: Sequence[str] = ()) -> None:
        self.folder, self.port = folder, port
        self._skew = folder / 'skew'
        self.jump(0.)
        # Jumps of the clock: of this process, not of the machine.
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
        """Start it, or start it again."""
        with open(self.folder / 'service.log', 'a') as log:
            self.process = subprocess.Popen(
                self._command, env=self._env, stdout=log,
                stderr=subprocess.STDOUT)

    def jump(self, seconds: float) -> None:
        """Set its clock, relative to the machine's."""
        part = self._skew.with_suffix('.part')
        part.write_text(str(seconds))
        os.replace(part, self._skew)

    def stop(self) -> None:
        """End it, if it runs."""
        self.process.terminate()
        try:
            self.process.wait(30)
        except subprocess.TimeoutExpired:
            self.process.kill()

    def is_ready(self) -> bool:
        """Whether all sources are there and have scores."""
        try:
            with urllib.request.urlopen(
                    f'http://127.0.0.1:{self.port}/readyz', timeout=5):
                return True
        except OSError:
            return False

    def usage(self) -> tuple[float, int, int, float]:
        """MiB of memory, file handles, threads, seconds of computing.

        Raises:
            OSError: If it does not run.
        """
        proc = Path(f'/proc/{self.process.pid}')
        status = (proc / 'status').read_text()
        found = re.search(r'VmRSS:\s+(\d+)', status)
        if not found:
            raise ProcessLookupError('it was killed')
        memory = int(found[1]) / 1024
        threads = int(re.search(r'Threads:\s+(\d+)', status)[1])
        # Behind the name, which may have spaces: user and system time.
        words = (proc / 'stat').read_text().rpartition(')')[2].split()
        cpu = sum(map(int, words[11:13])) / os.sysconf('SC_CLK_TCK')
        return memory, len(list((proc / 'fd').iterdir())), threads, cpu

    def events(self, source: int, start: int = 0) -> tuple[list[dict], int]:
        """The whole lines of a source's file from a byte on, and their end."""
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
        """Whether the clip of an action is there, by the event of its end."""
        return (self.folder / f'clips_{source + 1}' /
                f'{event["start_id"]:06d}.mp4').exists()


class Watch(threading.Thread):
    """Notes when events come, and what the service uses."""

    def __init__(self, service: Service, sources: list[int]) -> None:
        super().__init__(daemon=True)
        self._service = service
        # What has been read of the file of each.
        self._read = dict.fromkeys(sources, 0)
        # By source and number of the event.
        self.arrived: dict[tuple[int, int], float] = {}
        # By process: time and usage.
        self.usage: dict[int, list[tuple]] = {}
        self.done = threading.Event()

    def run(self) -> None:
        count = 0
        while not self.done.wait(0.1):
            now = time.monotonic()
            for source, start in self._read.items():
                # What a live source has written stays.
                events, self._read[source] = self._service.events(
                    source, start)
                for event in events:
                    self.arrived.setdefault((source, event['id']), now)
            count += 1
            # Not while it starts.
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
            raise SystemExit('the service did not get ready again')
        time.sleep(0.2)


def plan_of(source: int, seconds: float) -> list[tuple[str, float, float]]:
    """Class, start and end of each action that ends before some seconds."""
    return [(color_at(i * PERIOD + PAUSE, source), i * PERIOD + PAUSE,
             (i + 1) * PERIOD) for i in range(int(seconds / PERIOD))]


def check_numbers(events: list[dict]) -> list[str]:
    """Numbers without a gap, each action with one start before one end."""
    wrong = []
    if [event['id'] for event in events] != list(range(len(events))):
        wrong.append('numbers are not in order')
    going: dict[str, int] = {}
    for event in events:
        if event['event'] == 'start':
            if going.setdefault(event['class'], event['id']) != event['id']:
                wrong.append(f'{event} started twice')
        elif going.pop(event['class'], None) != event['start_id']:
            wrong.append(f'{event} ends what had not started')
    return wrong


def touches(faults: list[tuple[float, float]], start: float,
            end: float) -> bool:
    """Whether some time is one of faults."""
    return any(start < b and end > a for a, b in faults)


def compare(events: list[tuple[str, str, float]],
            plan: list[tuple[str, float, float]],
            faults: list[tuple[float, float]], first: float, last: float,
            tolerance: float) -> tuple[int, list[str]]:
    """Compare events (kind, class, time) with a plan.

    Returns:
        How many actions of the plan were compared, and what is wrong.
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
            found = [i for i, event in enumerate(events)
                     if event[:2] == (kind, name)
                     and abs(event[2] - at) <= tolerance]
            known.update(found)
            if len(found) != 1:
                wrong.append(f'{name} at {at:.2f} s has {len(found)} events '
                             f'"{kind}"')
    for i, (kind, name, at) in enumerate(events):
        # Those of actions that were not compared are not known.
        if i not in known and first + PERIOD < at < last - 2 * PERIOD and (
                not is_touched(at - PERIOD, at + PERIOD)):
            wrong.append(f'{kind} of {name} at {at:.2f} s is not in the plan')
    return compared, wrong


def compare_frames(events: list[dict]) -> tuple[int, list[str]]:
    """:func:`compare` the events of :func:`make_frames`."""
    timed = [(event['event'], event['class'], event[event['event']])
             for event in events]
    done = events[-1]['time'] if events else 0.
    # Its first action begins after a pause.
    return compare(timed, plan_of(1, done), [], 0., done, 0.6)


def may_grow(memory: float) -> float:
    """MiB that are no growth yet, of what there is."""
    return 0.03 * memory + 5


def check_usage(usage: dict[int, list[tuple]]
                ) -> tuple[str, dict[str, object], list[str]]:
    """The last third of the longest life beside its second one.

    Returns:
        It in words, in numbers, and what is wrong. Memory is not judged in a
        life that is shorter than :data:`SETTLED`.
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
            f'{before[2]:.0f}, {after[2]:.0f}; {cpu / seconds:.2f} of a core')
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
    draw, seconds = random.Random(args.seed), 60 * args.minutes
    model = make_model(folder)
    # The last fault ends a while later.
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
    addresses = [cameras[i].address if i in cameras else str(frames)
                 for i in range(4)]
    service = Service(folder, addresses, model, port, [
        '--segments', str(folder / 'clips'),
        '--segment-margin', str(MARGIN), str(MARGIN),
        # Full within a minute, so that growth is not that of its frames.
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
                # Without a reader the pipe's program has ended as well.
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
                # Long enough to be found lost.
                time.sleep(6)
            wait_until(service.is_ready)
            counts[kind] += 1
            for source in touched:
                faults[source].append(
                    (start, time.monotonic() - begun + 2))
            print(f'{start:.0f} s: {kind} {touched}', flush=True)

        end = begun + first + seconds
        # No kill in the second half: the last process is watched for long.
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
    # Of a machine that is too slow steps are dropped, and events are late.
    for line in (folder / 'service.log').read_text().splitlines()[-4:]:
        print(line.partition(';')[0])
    wrong, rows = [], []
    for source in range(4):
        events, _ = service.events(source)
        wrong += [f'source {source}: {line}' for line in check_numbers(events)]
        if source in cameras:
            # When it was, by when the event came.
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
            lines += [f'the clip of {event} is not there' for event in due
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
    print(f'{last - first:.0f} s, faults {dict(counts)}; longest life {text}')
    wrong += lines
    append_json(args.out, dict(
        seconds=round(last - first), rtsp=bool(args.rtsp),
        faults=dict(counts), sources=rows, process=usage, wrong=wrong))
    return wrong


def run_in_folder(run: Callable[[argparse.Namespace, Path], list[str]],
                  args: argparse.Namespace,
                  folder: Path | None = None) -> None:
    """Run a soak in a folder, and exit with 1 if anything is wrong."""
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
        help='seconds from a fault to the next, on average')
    parser.add_argument(
        '--rtsp', metavar='NODE_MODULES',
        default=os.environ.get('MMVIDATTN_NODE_MODULES'),
        help='where npm has installed rtsp-streaming-server (default: '
        '$MMVIDATTN_NODE_MODULES)')
    parser.add_argument('--seed', type=int, default=0)
    parser.add_argument(
        '--out', type=Path, help='write the figures to this file, as JSON')
    parser.add_argument(
        '--folder', type=Path, help='where to work (default: a temporary one)')
    args = parser.parse_args()
    run_in_folder(run, args, args.folder)


if __name__ == '__main__':
    main()
