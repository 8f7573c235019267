# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Detect actions while a video, a camera or a network stream runs.

    python tools/stream.py SOURCE [SOURCE ...] CONFIG CHECKPOINT \\
        --rgb RECOGNIZER WEIGHTS

A source is a video file, a folder of frames, the number of a camera, or a URL
such as rtsp://... . Ctrl-C ends it and keeps what was written.
"""
import argparse
import os
import secrets
import signal
import sys
import threading
from collections import deque
from contextlib import ExitStack
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

# First of all, so that what is imported next is healed.
import mmvidattn  # noqa: E402, F401, I001  isort: skip

import numpy as np  # noqa: E402
from mmengine.config import DictAction  # noqa: E402
from mmengine.device import get_device  # noqa: E402
from rich.bar import Bar  # noqa: E402
from rich.console import Console, Group  # noqa: E402
from rich.live import Live  # noqa: E402
from rich.panel import Panel  # noqa: E402
from rich.table import Table  # noqa: E402
from rich.text import Text  # noqa: E402

from mmvidattn.apis.online import Detection, OnlineDetector  # noqa: E402
from mmvidattn.apis.online.optical_flow import FLOWS  # noqa: E402
from mmvidattn.apis.runner import one_line_errors  # noqa: E402
from mmvidattn.datasets.feature_streams import open_array  # noqa: E402
from mmvidattn.visualization import VideoWriter  # noqa: E402
from mmvidattn.visualization.score_curves import (  # noqa: E402
    draw_score_curves,
)

# Seconds that a plot shows at most: the last ones.
PLOTTED = 3600
CAPTION_CLASSES = 3
VIEW_CLASSES, VIEW_EVENTS = 6, 4


def parse_args() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        'sources', nargs='+', metavar='SOURCE',
        help='video file, folder of frames, number of a camera, or URL')
    parser.add_argument('config', help='online detector: config file, or its '
                        'name')
    parser.add_argument('checkpoint', help='its weights')
    parser.add_argument(
        '--rgb', nargs=2, metavar=('CONFIG', 'CHECKPOINT'),
        help="recognizer whose features 'rgb' are (default: the config's "
        'online.extractors.rgb)')
    parser.add_argument(
        '--flow', nargs=2, metavar=('CONFIG', 'CHECKPOINT'),
        help="recognizer of optical flow whose features 'flow' are (default: "
        "the config's online.extractors.flow)")
    parser.add_argument(
        '--flow-method', choices=FLOWS,
        help="how the flow is computed (default: the config's, else dis)")
    parser.add_argument(
        '--events', type=Path, metavar='FILE',
        help='write the starts and ends of actions to this file, as JSON '
        'Lines, as they happen')
    parser.add_argument(
        '--out', type=Path, metavar='FILE',
        help='write the video with its scores to this .mp4')
    parser.add_argument(
        '--plot', type=Path, metavar='FILE',
        help='write a picture of the scores over time (of the last '
        f'{PLOTTED} s) to this .png')
    parser.add_argument(
        '--truth', type=Path, metavar='FILE',
        help='.npy (steps, classes) of what really happens, as in '
        'target_perframe, for the plot')
    for name, what in (('on', 'score at which an action starts'),
                       ('off', 'score below which it ends'),
                       ('min-duration', 'seconds that it lasts at least')):
        parser.add_argument(f'--{name}', type=float, help=f"{what} (default: "
                            "the config's, else that of EventDetector)")
    parser.add_argument(
        '--realtime', action='store_true',
        help='play files at their own speed, and drop what the machine is '
        'too slow for, as with a camera')
    parser.add_argument(
        '--fps', type=float, help='frames a second of a folder (default: 25) '
        'or camera (default: what it tells)')
    parser.add_argument(
        '--queue', type=int, default=4, help='steps that may wait before '
        'the oldest is dropped (default: %(default)s)')
    parser.add_argument(
        '--compile', action='store_true',
        help="compile the model's step first, which takes a minute, and is "
        'faster then')
    parser.add_argument(
        '--serve', action='store_true',
        help='show it on a web page, until Ctrl-C; files play at their own '
        'speed')
    parser.add_argument(
        '--host', default='127.0.0.1',
        help='address the page listens on (default: %(default)s, for this '
        'machine only)')
    parser.add_argument(
        '--port', type=int, default=8000,
        help='its port, 0 for any (default: %(default)s)')
    parser.add_argument(
        '--token', default=os.environ.get('MMVIDATTN_TOKEN'),
        help='what one must know to see the page (default: '
        '$MMVIDATTN_TOKEN; for a host that others can reach, a random one)')
    parser.add_argument(
        '--max-clients', type=int, default=8,
        help='how many may look at once (default: %(default)s)')
    parser.add_argument(
        '--device', default=get_device(),
        help='where to compute (default here: %(default)s)')
    parser.add_argument(
        '--cfg-options', nargs='+', action=DictAction, metavar='KEY=VALUE',
        help='change the config')
    return parser.parse_args()


class Outputs:
    """What is written of a source."""

    def __init__(self, detector: OnlineDetector, out: Path | None,
                 plot: Path | None, truth: np.ndarray | None) -> None:
        self.detector = detector
        self.latest: Detection | None = None
        self.error: Exception | None = None
        self._video = out and VideoWriter(out, detector.source.fps)
        self._plot = plot
        self._truth = truth
        self._scores: deque[tuple[float, np.ndarray]] = deque(
            maxlen=int(PLOTTED * detector.rate))

    def take(self, detection: Detection) -> None:
        self.latest = detection
        if self._plot:
            self._scores.append((detection.time, detection.scores))
        if self._video:
            lines = [f'{detection.time:.2f} s'] + [
                f'{name}: {score:.3f}'
                for name, score in self.best(CAPTION_CLASSES)
            ]
            for image in detection.images:
                self._video.write(image, lines)

    def best(self, number: int) -> list[tuple[str, float]]:
        """The most probable actions now."""
        scores, detector = self.latest.scores, self.detector
        order = [i for i in np.argsort(-scores) if i not in detector.ignore]
        return [(detector.classes[i], float(scores[i]))
                for i in order[:number]]

    def close(self) -> None:
        if self._video:
            self._video.close()
        if self._plot and self._scores:
            detector = self.detector
            times, scores = map(np.array, zip(*self._scores))
            draw_score_curves(
                self._plot, times, scores, detector.classes, detector.rate,
                self._truth,
                [e for e in detector.events.recent if e['event'] == 'end'],
                detector.ignore, detector.source.name)

    def view(self) -> Panel:
        """What the terminal shows of it."""
        report, parts = self.detector.report(), []
        if self.latest is not None:
            curves = Table.grid(padding=(0, 1))
            for name, score in self.best(VIEW_CLASSES):
                curves.add_row(name, Bar(1, 0, score, width=30),
                               f'{score:.2f}')
            parts += [curves, describe_latency(report)]
        parts += [describe_event(e)
                  for e in list(self.detector.events.recent)[-VIEW_EVENTS:]]
        title = Text(f'{report["name"]}: {report["status"]}')
        return Panel(Group(*parts), title=title, title_align='left')


def describe_latency(report: dict) -> str:
    stages = ', '.join(f'{stage} {ms["median"]:.1f}'
                       for stage, ms in report['latency'].items())
    return (f'{report["steps"]} steps, {report["dropped"]} dropped, '
            f'{report["missing"]} missing; median ms of the '
            f'{1000 / report["rate"]:g} of a step: {stages}')


def describe_event(event: dict) -> str:
    if event['event'] == 'start':
        return f'{event["class"]} started at {event["start"]:.2f} s'
    return (f'{event["class"]} from {event["start"]:.2f} to '
            f'{event["end"]:.2f} s, at most {event["peak"]:.2f}')


def watch(outputs: Outputs, console: Console | None, publish) -> None:
    """Run a detector to its end."""
    try:
        for detection in outputs.detector:
            outputs.take(detection)
            publish(detection)
            if console:
                for event in detection.events:
                    console.print(describe_event(event), soft_wrap=True)
    except Exception as error:
        # The others go on; it is told again in the end.
        outputs.error = error
        if console:
            console.print(f'{outputs.detector.source.name}: {error}',
                          soft_wrap=True)


def make_detectors(args: argparse.Namespace) -> list[OnlineDetector]:
    extractors = {}
    for name in 'rgb', 'flow':
        given = getattr(args, name)
        if given:
            extractors[name] = dict(zip(('config', 'checkpoint'), given))
    if args.flow:
        extractors['flow']['flow'] = 'dis'
    if args.flow_method:
        extractors.setdefault('flow', {})['flow'] = args.flow_method
    events = dict(on=args.on, off=args.off, min_duration=args.min_duration)
    shared = dict(realtime=args.realtime or args.serve, fps=args.fps)
    first = OnlineDetector(
        args.config, args.checkpoint, args.sources[0], extractors,
        {k: v for k, v in events.items() if v is not None},
        number(args.events, 0, args), args.device, queue_size=args.queue,
        compile_step=args.compile, cfg_options=args.cfg_options, **shared)
    return [first] + [
        first.with_source(source, number(args.events, i, args), **shared)
        for i, source in enumerate(args.sources[1:], 1)
    ]


def number(path: Path | None, i: int,
           args: argparse.Namespace) -> Path | None:
    """The file of a source: of several, each has a number in its name."""
    if path is None or len(args.sources) == 1:
        return path
    return path.with_stem(f'{path.stem}_{i + 1}')


def check_args(args: argparse.Namespace) -> np.ndarray | None:
    """Check what can be checked early; returns the ground truth."""
    for name, path, suffix in (('out', args.out, '.mp4'),
                               ('plot', args.plot, '.png')):
        if path is not None and path.suffix.lower() != suffix:
            raise ValueError(f'--{name} must end with {suffix}, got {path}')
    if args.truth is None:
        return None
    if args.plot is None:
        raise ValueError('--truth is for --plot, which is not given')
    return np.asarray(open_array(args.truth))


def serve(args: argparse.Namespace, detectors: list[OnlineDetector]):
    try:
        from mmvidattn.apis.online.server import LivePage, is_loopback
    except ImportError as error:
        raise ValueError(error) from error
    token = args.token
    if not token and not is_loopback(args.host):
        token = secrets.token_urlsafe(16)
    return LivePage(detectors, args.host, args.port, token, args.max_clients)


def main() -> None:
    args = parse_args()
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    # Names may have brackets.
    console = Console(markup=False, highlight=False)
    with one_line_errors('stream.py'), ExitStack() as stack:
        truth = check_args(args)
        detectors = make_detectors(args)
        outputs = [
            Outputs(detector, number(args.out, i, args),
                    number(args.plot, i, args), truth)
            for i, detector in enumerate(detectors)
        ]
        page = None
        if args.serve:
            page = stack.enter_context(serve(args, detectors))
            console.print(f'the page: {page.url}', soft_wrap=True)
        threads = [
            threading.Thread(
                target=watch, daemon=True,
                args=(output, None if console.is_terminal else console,
                      lambda detection, i=i: page and page.publish(
                          i, detection)))
            for i, output in enumerate(outputs)
        ]
        for thread in threads:
            thread.start()
        try:
            show(console, outputs, threads, bool(page))
        except KeyboardInterrupt:
            console.print('stopped')
        for detector in detectors:
            detector.stop()
        for thread in threads:
            thread.join()
        for output in outputs:
            output.close()
            report = output.detector.report()
            console.print(f'{report["name"]}: {describe_latency(report)}',
                          soft_wrap=True)
    failed = [str(o.error) for o in outputs if o.error is not None]
    if failed:
        raise SystemExit('stream.py: error: ' + '; '.join(failed))


def show(console: Console, outputs: list[Outputs],
         threads: list[threading.Thread], forever: bool) -> None:
    """Show what happens, until all sources have ended."""
    wait = threading.Event()

    def views() -> Group:
        return Group(*(output.view() for output in outputs))

    with ExitStack() as stack:
        live = None
        if console.is_terminal:
            live = stack.enter_context(
                Live(views(), console=console, auto_refresh=False))
        while forever or any(thread.is_alive() for thread in threads):
            wait.wait(0.2)
            if live:
                live.update(views(), refresh=True)


if __name__ == '__main__':
    main()
