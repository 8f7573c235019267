# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Detect actions live in videos, cameras or network streams.

    mmvidattn stream SOURCE [SOURCE ...] BUNDLE
    mmvidattn stream SOURCE [SOURCE ...] CONFIG CHECKPOINT \\
        --rgb RECOGNIZER WEIGHTS
    mmvidattn stream SOURCE [SOURCE ...] RECOGNIZER CHECKPOINT --seconds 2

The model is an online detector, which reads the features of an extractor, or a
clip model, which runs on a sliding window.

A source is a video file, a folder of frames, the number of a camera, or a URL
such as rtsp://... . Ctrl-C stops the program; its output files are kept.
"""
import argparse
import os
import secrets
import signal
import threading
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, ExitStack
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..online import MIN_DURATION, OFF, ON
from ..utils.exits import CTRL_C, Stopped, one_line_errors, program_name
from ..utils.printable import LAYOUT, count, describe_error, echo, printable
from ._options import add_cfg_options, add_compute, add_model, positive

if TYPE_CHECKING:
    from ..live import StreamRun
    from ..live.server import LivePage
    from ..live.sinks import Sink

# Parameters of a model that is not faster on several threads.
SMALL = 1_000_000

def add_arguments(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add('sources', nargs='+', metavar='SOURCE',
        help='video file, folder of frames, number of a camera, or URL')
    add_model(parser)
    for name, kind in ('rgb', ''), ('flow', ' of optical flow'):
        add(f'--{name}', nargs=2, metavar=('CONFIG', 'CHECKPOINT'),
            help=f"network{kind} that computes the features '{name}' (see "
            "extract-features), and its checkpoint, or '-' for its default "
            f"weights (default: the config's online.extractors.{name})")
    add('--seconds', type=positive, help='length of the sliding window of a '
        "clip model (default: the config's online.seconds, or else the span "
        'of a clip in its test pipeline)')
    add('--stride', type=positive, help='seconds between windows of a clip '
        "model (default: the config's online.stride, or else the distance "
        'between frames or tubelets that it encodes independently)')
    add('--flow-method', metavar='METHOD', help='method to compute flow: dis, '
        "tvl1 or farneback (default: the config's, or else dis)")
    add('--events', type=Path, metavar='FILE', help='write the start and end '
        'of each action to this file immediately, as JSON Lines. With several '
        'sources, each output has a file per source: FILE_1, FILE_2, ...')
    add('--out', type=Path, metavar='FILE',
        help='write the video with its scores to this .mp4 file')
    add('--plot', type=Path, metavar='FILE', help='write an image of the '
        'scores over time (the last hour) to this .png file')
    for name, meaning, default in (
            ('on', 'score at which an action starts', ON),
            ('off', 'score below which an action ends',
             f'{OFF}; both are scaled with a lower --on'),
            ('min-duration', 'minimum seconds of an action', MIN_DURATION)):
        add(f'--{name}', type=float,
            help=f"{meaning} (default: the config's, or else {default})")
    add('--thresholds', type=Path, metavar='FILE',
        help='thresholds of each class, from mmvidattn tune-thresholds, '
        'instead of --on, --off and --min-duration')
    add('--scores', type=Path, metavar='FOLDER', help='write the scores of '
        'all steps to this folder, for tune-thresholds and score')
    add('--realtime', action='store_true', help='play files at their frame '
        'rate, and drop steps if the machine is too slow, like with a camera')
    add('--fps', type=float, help='frame rate of a folder (default: 25) or '
        'camera (default: the rate that it reports)')
    add('--queue', type=int, default=4, help='maximum number of waiting steps '
        'before the oldest one is dropped (default: %(default)s)')
    add('--state', type=Path, metavar='FILE', help='save the state to this '
        'file; after a stop or a kill, the same command resumes from it, and '
        'appends to the file of events')
    add('--segments', type=Path, metavar='FOLDER', help='write a clip of each '
        'action to this folder, named by the number of its start event')
    add('--segment-margin', type=float, nargs=2, default=(2., 2.),
        metavar=('BEFORE', 'AFTER'), help='seconds before and after the '
        'action in its clip (default: 2 2)')
    add('--webhook', metavar='URL',
        help='post each event to this http(s) URL as JSON')
    add('--serve', action='store_true',
        help='serve a web page until Ctrl-C; files play at their frame rate')
    add('--host', default='127.0.0.1', help='address that the page listens on '
        '(default: %(default)s, which only this machine can reach)')
    add('--port', type=int, default=8000,
        help='port of the page, or 0 for any free port (default: %(default)s)')
    add('--token', default=os.environ.get('MMVIDATTN_TOKEN'),
        help='access token of the page (default: $MMVIDATTN_TOKEN, or else a '
        'random token if other machines can reach the host)')
    add('--read-only', action='store_true',
        help='do not let users of the page change thresholds')
    add_compute(parser)
    add_cfg_options(parser)


def check(args: argparse.Namespace) -> None:
    """Raise a ``ValueError`` early if an option is wrong."""
    from ..live.sinks import check_webhook
    from ..utils.arguments import NotNegative, check_type

    for name, path, suffix in (('out', args.out, '.mp4'),
                               ('plot', args.plot, '.png')):
        if path is not None and path.suffix.lower() != suffix:
            raise ValueError(f'--{name} must end with {suffix}, got {path}')
    if args.webhook is not None:
        check_webhook(args.webhook)
    for value in args.segment_margin:
        check_type('segment_margin', value, NotNegative)
    if args.scores is not None and args.state is not None:
        raise ValueError('--scores does not work with --state, because a '
                         'resumed run lacks the scores of earlier steps')


def make_runs(args: argparse.Namespace) -> 'list[StreamRun]':
    """Build a run for each source, and split the model from the sources."""
    from ..apis.config import load_config
    from ..live import StreamRun, load_live_model, open_source
    from ._model_argument import split_model

    args.sources, args.config, args.checkpoint = split_model(
        [*args.sources, *args.model])
    cfg = load_config(args.config, args.cfg_options)
    extractors = {
        name: dict(config=given[0],
                   checkpoint=None if given[1] == '-' else given[1])
        for name, given in dict(rgb=args.rgb, flow=args.flow).items() if given}
    if args.flow or args.flow_method:
        configured = cfg.get('online', {}).get('extractors', {}).get(
            'flow', {}).get('flow', 'dis')
        extractors.setdefault('flow', {})['flow'] = (
            args.flow_method or configured)
    # Open the sources before building the model, because they often fail.
    sources = [
        open_source(source, args.realtime or args.serve, args.fps)
        for source in args.sources]
    events = {name: value for name in ('on', 'off', 'min_duration')
              if (value := getattr(args, name)) is not None}
    if events and args.thresholds is not None:
        option = next(iter(events)).replace('_', '-')
        raise ValueError('--thresholds has the thresholds of each class, so '
                         f'--{option} must be left out')
    model = load_live_model(
        cfg, args.checkpoint, extractors=extractors or None,
        events=events, thresholds=args.thresholds,
        device=args.device, seconds=args.seconds, stride=args.stride)
    return [StreamRun(
        model, source, events_file=file_of_source(args.events, i, args),
        queue_size=args.queue, state_file=file_of_source(args.state, i, args))
        for i, source in enumerate(sources)]


def make_sinks(args: argparse.Namespace, i: int,
               run: 'StreamRun') -> 'list[Sink]':
    """Build the sinks of a source."""
    from ..live.file_sinks import PlotSink, ScoreSink, SegmentSink, VideoSink
    from ..live.sinks import WebhookSink

    sinks = [
        kind(file_of_source(path, i, args), run, *options)
        for kind, path, *options in (
            (VideoSink, args.out), (PlotSink, args.plot),
            (SegmentSink, args.segments, *args.segment_margin)) if path]
    if args.scores:
        sinks.append(ScoreSink(args.scores, run))
    if args.webhook:
        sinks.append(WebhookSink(args.webhook, run.source.name))
    return sinks


def file_of_source(path: Path | None, i: int,
                   args: argparse.Namespace) -> Path | None:
    """Return the file of a source; add a number if there are several."""
    if path is None or len(args.sources) == 1:
        return path
    return path.with_stem(f'{path.stem}_{i + 1}')


def make_page(args: argparse.Namespace,
              runs: 'Sequence[StreamRun]') -> 'LivePage':
    from ..live.server import LivePage, is_loopback

    # Other machines may reach the page.
    token = args.token or (
        None if is_loopback(args.host) else secrets.token_urlsafe(16))
    return LivePage(runs, host=args.host, port=args.port, token=token,
                    read_only=args.read_only)


class Worker(threading.Thread):
    """Thread that follows a source, and prints its events after a prefix.

    The threads of all sources share the model; the steps that wait are scored
    as one batch (``live/scorers.py``). ``error`` is the error that ended the
    run, or None.
    """

    def __init__(self, source_run: 'StreamRun', prefix: str,
                 context: Callable[[], AbstractContextManager]) -> None:
        super().__init__(daemon=True)
        self.source_run = source_run
        self.error: Exception | None = None
        self._prefix = prefix
        self._context = context
        recent = source_run.events.recent
        self._last_id = recent[-1]['id'] if recent else -1

    def run(self) -> None:
        try:
            # Autocast and the number of threads are states of a thread.
            limit_threads(self.source_run)
            with self._context():
                for _ in self.source_run:
                    self._log_events()
        except Exception as error:
            # The other sources continue. The program reports the error last.
            self.error = error
            log(f'{self.source_run.source.name}: {describe_error(error)}')
        # A source that ended has ended its actions, too.
        self._log_events()

    def _log_events(self) -> None:
        for event in self.source_run.events.recent:
            if event['id'] > self._last_id:
                self._last_id = event['id']
                log(self._prefix + describe_event(event))


def log(line: str) -> None:
    """Print a line at once, because several threads print."""
    echo(f'{line}\n', end='')


def describe_event(event: dict) -> str:
    """Describe an event in one line."""
    if event['event'] == 'start':
        return f'{event["class"]} started at {event["start"]:.2f} s'
    return (f'{event["class"]} from {event["start"]:.2f} to '
            f'{event["end"]:.2f} s, peak score {event["peak"]:.2f}')


def describe_report(report: dict[str, Any]) -> str:
    """Describe counts and latency of :meth:`StreamRun.report` in one line."""
    stages = ', '.join(f'{stage} {ms["median"]:.1f}'
                       for stage, ms in report['latency'].items())
    lost = ''.join(f', {count(number, "item")} lost by {name}'
                   for name, number in report['lost'].items())
    duration = f'step of {1000 / report["rate"]:g} ms'
    timing = (f'median ms of a {duration}: {stages}' if stages else
              f'no complete {duration}')
    return (f'{count(report["steps"], "step")}, {report["dropped"]} dropped, '
            f'{report["missing"]} missing{lost}; {timing}')


def describe_peaks(run: 'StreamRun') -> str:
    """Describe the highest score of each class, and its threshold."""
    thresholds = run.event_detector.thresholds()
    changed = {**thresholds['tuned'], **thresholds['changed']}
    starts = {name: on for name, (on, *_) in changed.items()}
    scores = ', '.join(
        f'{name} {score:.2f} of {starts.get(name, thresholds["on"]):.2f}'
        for name, score in run.top_actions(run.peaks, 6).items())
    return ('no events. Highest score of each class, of the score at which '
            f'its actions start (--on): {scores}. An action must also last '
            'for --min-duration')


def wait_for(workers: Sequence[Worker], forever: bool) -> None:
    """Wait until all runs have ended; log each loss and return of a source."""
    wait = threading.Event()
    sources = [worker.source_run.source for worker in workers]
    shown = [source.status for source in sources]
    while forever or any(worker.is_alive() for worker in workers):
        wait.wait(0.2)
        for i, source in enumerate(sources):
            status = source.status
            # A worker logs the error of a failed source.
            if status != shown[i] and not (
                    status.startswith(('ended', 'failed'))):
                log(f'{source.name}: {status}')
            if forever and status == 'ended' != shown[i]:
                log(f'{source.name}: ended; the page stays until Ctrl-C')
            shown[i] = status


def limit_threads(source_run: 'StreamRun') -> None:
    """Let a small model compute on this thread, unless the user decides.

    More threads are not faster, and wait for each other on a busy machine.
    """
    import torch
    if 'OMP_NUM_THREADS' not in os.environ and not (
            source_run.extractors or sum(
                p.numel() for p in source_run.model.parameters()) > SMALL):
        torch.set_num_threads(1)


def stop_service(*args: Any) -> None:
    """Stop on SIGTERM, the regular end of a service."""
    raise Stopped(0, 'stopped')


def report_run(source_run: 'StreamRun', files: Sequence[Path]) -> list[str]:
    """Log files, counts and latency; return the incomplete files.

    Only a recording must be complete. Sinks of files have the file's name.
    """
    written = [str(path) for path in files if path.exists()]
    if written:
        log(f'written: {", ".join(written)}')
    report = source_run.report()
    log(f'{report["name"]}: {describe_report(report)}')
    if source_run.resumed and not source_run.peaks.any():
        log(f'{report["name"]}: no new step: the run of this --state has '
            'ended; with another file, it starts over')
    elif report['steps'] and not source_run.events.recent:
        log(f'{report["name"]}: {describe_peaks(source_run)}')
    return [] if source_run.source.live else [
        path for path in map(str, files) if path in report['lost']]


def run(args: argparse.Namespace) -> None:
    from ..apis.sliding import SlidingClassifier
    from ..utils.half_precision import amp

    signal.signal(signal.SIGTERM, stop_service)

    with one_line_errors(), ExitStack() as stack:
        check(args)
        runs = make_runs(args)
        for i, source_run in enumerate(runs):
            source_run.log = log
            name = source_run.source.name
            if isinstance(source_run.session, SlidingClassifier):
                log(f'{name}: {source_run.session.describe()}')
            if source_run.resumed:
                log(f'{name} {source_run.resumed}')
            for sink in make_sinks(args, i, source_run):
                source_run.add_sink(sink)
        if args.serve:
            page = stack.enter_context(make_page(args, runs))
            log(f'page: {page.url} (until Ctrl-C)')
            for i, source_run in enumerate(runs):
                source_run.add_sink(page.sink(i))
        context = partial(amp, args.device, args.amp)
        workers = [
            Worker(source_run, f'{source_run.source.name}: ' * (len(runs) > 1),
                   context) for source_run in runs]
        for worker in workers:
            worker.start()
        code, incomplete = 0, []
        try:
            wait_for(workers, args.serve)
        except (KeyboardInterrupt, Stopped) as stop:
            code = getattr(stop, 'code', CTRL_C)
            can_resume = args.state and any(w.is_alive() for w in workers)
            log('stopped' + '; the same command continues' * bool(can_resume))
        # Ends the run after its current step, and saves its state.
        for source_run in runs:
            source_run.stop()
        for worker in workers:
            worker.join()
        for i, source_run in enumerate(runs):
            files = [file_of_source(path, i, args) for path in (
                args.events, args.out, args.plot, args.segments) if path]
            incomplete += report_run(
                source_run, [*files, *([args.scores] if args.scores else [])])
    failed = [describe_error(worker.error) for worker in workers
              if worker.error is not None]
    failed += [f'{name} is incomplete' for name in incomplete]
    # A failure also decides the exit code of a stopped run.
    if failed:
        raise SystemExit(printable(
            f'{program_name()}: error: ' + '; '.join(failed), LAYOUT))
    if code:
        raise SystemExit(code)
