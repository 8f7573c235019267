# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Detect actions live in videos, cameras or network streams."""
import argparse
import secrets
import signal
import threading
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from rich.console import Console, Group
from rich.live import Live

from ..apis.models import load_config
from ..apis.runner import one_line_errors, program_name
from ..apis.sliding import SlidingClassifier
from ..datasets.feature_streams import open_array
from ..live import Detection, StreamRun, load_live_model, open_source
from ..live.sinks import Sink
from ..live.sinks.files import PlotSink, ScoreSink, SegmentSink, VideoSink
from ..live.sinks.messages import (
    MqttSink,
    WebhookSink,
    check_mqtt,
    check_webhook,
)
from ..live.terminal import (
    describe_event,
    describe_peaks,
    describe_report,
    view,
)
from ..utils.arguments import NotNegative, Positive, check_type
from ..utils.interrupts import CTRL_C, Stopped
from ..utils.printable import LAYOUT, printable
from .model_argument import split_model

if TYPE_CHECKING:
    from ..live.server import LivePage


def check_args(args: argparse.Namespace) -> np.ndarray | None:
    """Check the options early; return the ground truth."""
    for name, path, suffix in (('out', args.out, '.mp4'),
                               ('plot', args.plot, '.png')):
        if path is not None and path.suffix.lower() != suffix:
            raise ValueError(f'--{name} must end with {suffix}, got {path}')
    if args.webhook is not None:
        check_webhook(args.webhook)
    if args.mqtt is not None:
        check_mqtt(args.mqtt)
    for value in args.segment_margin:
        check_type('segment_margin', value, NotNegative)
    check_type('segment_mb', args.segment_mb, Positive)
    if args.scores is not None and args.state is not None:
        raise ValueError('--scores does not work with --state, because a '
                         'resumed run lacks the scores of earlier steps')
    if args.truth is None:
        return None
    if args.plot is None:
        raise ValueError('--truth needs --plot')
    return np.asarray(open_array(args.truth))


def make_runs(args: argparse.Namespace) -> list[StreamRun]:
    """Build a run for each source, and split the model from the sources."""
    args.sources, args.config, args.checkpoint = split_model(
        [*args.sources, *args.model])
    cfg = load_config(args.config, args.cfg_options)
    extractors = {}
    for name in 'rgb', 'flow':
        given = getattr(args, name)
        if given:
            config, checkpoint = given
            extractors[name] = dict(
                config=config,
                checkpoint=None if checkpoint == '-' else checkpoint)
    if args.flow or args.flow_method:
        configured = cfg.get('online', {}).get('extractors', {}).get(
            'flow', {}).get('flow', 'dis')
        extractors.setdefault('flow', {})['flow'] = (
            args.flow_method or configured)
    # Open the sources before building the model, because they often fail.
    sources = [
        open_source(source, args.realtime or args.serve, args.fps)
        for source in args.sources]
    model = load_live_model(
        args.config, args.checkpoint, extractors=extractors or None,
        events=event_options(args), thresholds=args.thresholds,
        device=args.device, compile_step=args.compile,
        cfg_options=args.cfg_options, seconds=args.seconds,
        stride=args.stride)
    return [
        StreamRun(
            model, source, events_file=file_of_source(args.events, i, args),
            queue_size=args.queue,
            state_file=file_of_source(args.state, i, args),
            state_seconds=args.state_seconds, duration=args.duration)
        for i, source in enumerate(sources)
    ]


def event_options(args: argparse.Namespace) -> dict[str, Any]:
    """Return the options of the event detector that the user gave."""
    given = dict(on=args.on, off=args.off, min_duration=args.min_duration)
    given = {k: v for k, v in given.items() if v is not None}
    if given and args.thresholds is not None:
        option = next(iter(given)).replace('_', '-')
        raise ValueError('--thresholds has the thresholds of each class, so '
                         f'--{option} must be left out')
    return given


def make_sinks(args: argparse.Namespace, i: int, run: StreamRun,
               truth: np.ndarray | None) -> list[Sink]:
    sinks = []
    if args.out:
        sinks.append(VideoSink(file_of_source(args.out, i, args), run))
    if args.plot:
        sinks.append(PlotSink(file_of_source(args.plot, i, args), run, truth))
    if args.scores:
        sinks.append(ScoreSink(args.scores, run))
    if args.segments:
        sinks.append(SegmentSink(
            file_of_source(args.segments, i, args), run,
            *args.segment_margin, int(args.segment_mb * 2**20)))
    for name, sink in ('webhook', WebhookSink), ('mqtt', MqttSink):
        url = getattr(args, name)
        if url:
            sinks.append(sink(url, run, sent_file(name, i, args)))
    return sinks


def sent_file(name: str, i: int, args: argparse.Namespace) -> Path | None:
    """Return the file for the last delivered event of a message sink.

    None without --events and --state, which a resumed run needs.
    """
    if args.events is None or args.state is None:
        return None
    events = file_of_source(args.events, i, args)
    return events.with_name(f'{events.name}.{name}')


def file_of_source(path: Path | None, i: int,
                   args: argparse.Namespace) -> Path | None:
    """Return the file of a source; add a number if there are several."""
    if path is None or len(args.sources) == 1:
        return path
    return path.with_stem(f'{path.stem}_{i + 1}')


def make_page(args: argparse.Namespace, runs: Sequence[StreamRun],
              sinks: Sequence[Sequence[Sink]]) -> 'LivePage':
    try:
        from ..live.server import LivePage, is_loopback
    except ImportError as error:
        raise ValueError(error) from error
    token = args.token
    if not token and not is_loopback(args.host):
        # Other machines can reach the page.
        token = secrets.token_urlsafe(16)
    segments = [sink for group in sinks for sink in group
                if isinstance(sink, SegmentSink)]
    return LivePage(
        runs, host=args.host, port=args.port, token=token,
        max_clients=args.max_clients, read_only=args.read_only,
        segments=[sink.read for sink in segments] or None)


class Worker(threading.Thread):
    """Thread that processes a run.

    Args:
        source_run: The run.
        log: Function to print a line.

    Attributes:
        latest: Latest detection, or None.
        error: Error that ended the run, or None.
    """

    def __init__(self, source_run: StreamRun,
                 log: Callable[[str], None]) -> None:
        super().__init__(daemon=True)
        self.source_run = source_run
        self.latest: Detection | None = None
        self.error: Exception | None = None
        self._log = log
        recent = source_run.events.recent
        self._last_id = recent[-1]['id'] if recent else -1

    def run(self) -> None:
        try:
            for detection in self.source_run:
                self.latest = detection
                self._log_events()
        except Exception as error:
            # The other sources continue. The program reports the error last.
            self.error = error
            self._log(f'{self.source_run.source.name}: {error}')
        # The end of the source ends the actions after its last detection.
        self._log_events()

    def _log_events(self) -> None:
        for event in self.source_run.events.recent:
            if event['id'] > self._last_id:
                self._last_id = event['id']
                self._log(describe_event(event))


def show(console: Console, workers: Sequence[Worker], forever: bool,
         log: Callable[[str], None]) -> None:
    """Show the runs in a terminal until all have ended.

    Elsewhere, log each loss and return of a source.
    """
    wait = threading.Event()
    sources = [worker.source_run.source for worker in workers]
    shown = [source.status for source in sources]

    def views() -> Group:
        return Group(*(view(w.source_run, w.latest) for w in workers))

    with ExitStack() as stack:
        live = None
        if console.is_terminal:
            live = stack.enter_context(
                Live(views(), console=console, auto_refresh=False))
        while forever or any(worker.is_alive() for worker in workers):
            wait.wait(0.2)
            if live:
                live.update(views(), refresh=True)
                continue
            for i, source in enumerate(sources):
                status = source.status
                # A worker logs the error of a failed source.
                if status != shown[i] and not (
                        status.startswith(('ended', 'failed'))):
                    log(f'{source.name}: {status}')
                shown[i] = status


def stop_service(*args: Any) -> None:
    """Stop on SIGTERM, the regular end of a service."""
    raise Stopped(0, 'stopped')


def run(args: argparse.Namespace) -> None:
    signal.signal(signal.SIGTERM, stop_service)
    # Names may contain brackets, which are markup for rich.
    console = Console(markup=False, highlight=False)

    def log(line: str) -> None:
        console.print(printable(line, LAYOUT), soft_wrap=True)

    with one_line_errors(), ExitStack() as stack:
        truth = check_args(args)
        runs = make_runs(args)
        for run in runs:
            if isinstance(run.session, SlidingClassifier):
                log(f'{run.source.name}: {run.session.describe()}')
        sinks = [make_sinks(args, i, run, truth) for i, run in enumerate(runs)]
        if (args.webhook or args.mqtt) and not (args.events and args.state):
            log('note: undelivered messages are lost when this program ends; '
                'use --events and --state to keep them')
        for run, group in zip(runs, sinks):
            if run.resumed:
                log(f'{run.source.name} {run.resumed}')
            for sink in group:
                run.add_sink(sink, log)
        if args.serve:
            page = stack.enter_context(make_page(args, runs, sinks))
            log(f'page: {page.url}'
                + ' (until Ctrl-C)' * (args.duration is None))
            for i, run in enumerate(runs):
                run.add_sink(page.sink(i), log)
        # In a terminal, the view already shows the events.
        quiet = console.is_terminal
        workers = [
            Worker(run, (lambda line: None) if quiet else log)
            for run in runs
        ]
        for worker in workers:
            worker.start()
        code = 0
        try:
            show(console, workers,
                 args.serve and args.duration is None, log)
        except (KeyboardInterrupt, Stopped) as stop:
            code = getattr(stop, 'code', CTRL_C)
            can_resume = args.state and any(w.is_alive() for w in workers)
            log('stopped' + '; the same command continues' * bool(can_resume))
        for run in runs:
            run.stop()
        for worker in workers:
            worker.join()
        for run in runs:
            report = run.report()
            log(f'{report["name"]}: {describe_report(report)}')
            if report['steps'] and not run.events.recent:
                log(f'{report["name"]}: {describe_peaks(run)}')
    failed = [str(w.error) for w in workers if w.error is not None]
    if failed:
        raise SystemExit(printable(
            f'{program_name()}: error: ' + '; '.join(failed), LAYOUT))
    if code:
        raise SystemExit(code)
