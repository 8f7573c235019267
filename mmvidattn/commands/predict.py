# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Classify videos, or time windows of long videos.

    mmvidattn predict VIDEO [VIDEO ...] BUNDLE
    mmvidattn predict VIDEO [VIDEO ...] CONFIG CHECKPOINT
    mmvidattn predict LONG_VIDEO BUNDLE --windows 10 --stride 5
    mmvidattn predict LONG_VIDEO BUNDLE --segments tasks.json --to label-studio
    mmvidattn predict videos.csv BUNDLE --json predictions
"""
import argparse
import hashlib
import json
import logging
import sys
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import nullcontext
from functools import lru_cache, partial
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING

from ..utils.exits import one_line_errors, one_line_stop, program_name
from ..utils.printable import count, describe_error, echo, first_few, printable
from ._options import (
    add_compute,
    add_engine,
    add_model,
    at_least,
    check_engine,
    positive,
)

if TYPE_CHECKING:
    from ..apis import VideoClassifier, VideoPrediction

# Options that predictions in a folder do not support.
FILE_ONLY = ('out', 'json_lines', 'windows', 'stride', 'segments', 'to',
             'thresholds', 'fps', 'batch_size', 'compile')


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add('videos', nargs='+', metavar='VIDEO',
        help='video file or its URL, folder of videos, or folder of frames '
        '(without any video); with --json FOLDER also a list of videos (.txt '
        'or .csv), with --segments also a live source')
    add_model(parser)
    add('--labels', help='file with one class name per line (default: the '
        "names in the checkpoint, or else the config's)")
    add('--out', type=Path, metavar='FILE_OR_FOLDER', help='write the '
        'captioned video to an .mp4 file, or some of its frames to a .png or '
        '.jpg file, or an .mp4 file per video to a folder')
    add('--json', type=Path, metavar='FILE_OR_FOLDER',
        help='write the predictions to a file, or a .json file per video to a '
        'folder (a path without a suffix), where the same command continues')
    add('--json-lines', type=Path, metavar='FILE',
        help='write each prediction to this file immediately, one per line')
    add('--windows', type=positive, metavar='SECONDS',
        help='classify time windows of this length; --out then shows in each '
        'frame the prediction of the latest window that contains it')
    add('--stride', type=positive, metavar='SECONDS',
        help='seconds between the starts of consecutive windows (default: '
        'their length)')
    add('--segments', type=Path, metavar='OUT', help='write the actions in '
        'long videos with their scores as annotations. Clip models use '
        'windows (default: as in mmvidattn stream)')
    add('--to', metavar='FORMAT', help='format of --segments, as in mmvidattn '
        'annotations (default: by the suffix of OUT)')
    add('--thresholds', type=Path, metavar='FILE',
        help='thresholds of each class for --segments, from mmvidattn '
        "tune-thresholds (default: the model's)")
    add('--fps', type=float,
        help='frame rate of folders of frames, and of live sources with '
        '--segments')
    add('--batch-size', type=at_least(1),
        help='number of videos or windows per batch (default: 1)')
    add('--compile', action='store_true',
        help='compile the model first, which pays off for many videos')
    add_compute(parser)
    add_engine(parser)


def to_folder(args: argparse.Namespace) -> bool:
    """Return True if --json is a folder."""
    path = args.json
    # /dev/stdout has no suffix either.
    return path is not None and (path.is_dir() or not (
        path.suffix or path.exists()))


def check(args: argparse.Namespace) -> None:
    """Raise a ``ValueError`` unless the options belong together."""
    check_engine(args)
    folder, segments, windows = to_folder(args), args.segments, args.windows
    for applies, names, reason in (
            (folder, FILE_ONLY, 'does not work with --json FOLDER'),
            (not folder, ('engine', ), 'needs --json FOLDER'),
            (segments, ('labels', 'out', 'json', 'json_lines', 'compile',
                        'batch_size'), 'does not work with --segments'),
            (not segments, ('to', 'thresholds'), 'needs --segments'),
            (not segments and not windows, ('stride', ),
             'needs --windows or --segments'),
            (windows and not segments, ('json', ),
             'does not work with --windows: use --json-lines')):
        for name in names:
            if applies and getattr(args, name) not in (None, False):
                raise ValueError(f'--{name.replace("_", "-")} {reason}')


def name_videos(inputs: list[str]) -> dict[str, Path]:
    """Return a unique output name for each video."""
    from ..apis.video_clips import is_folder_of_videos
    from ..datasets.video_facts import list_videos

    videos = {}
    for source in inputs:
        if is_folder_of_videos(source):
            videos.update((str(path), path.relative_to(source))
                          for path in map(Path, list_videos(source)))
        else:
            videos[source] = Path(Path(source).name)
    return videos


def plan_outputs(videos: dict[str, Path], out: Path | None
                 ) -> dict[str, Path]:
    """Choose the file to write for each video."""
    from ..visualization import OUTPUTS

    if out is None:
        return {}
    for video in videos:
        if Path(video).is_dir() or '://' in video:
            raise ValueError(f'--out needs video files, got {video}')
    is_file = out.suffix.lower() in OUTPUTS
    if is_file and len(videos) > 1:
        raise ValueError(f'--out {out} must be a folder for {len(videos)} '
                         'videos, got one file')
    outputs = {video: out if is_file else out / name.with_suffix('.mp4')
               for video, name in videos.items()}
    taken = {Path(video).resolve() for video in videos}
    count = Counter(outputs.values())
    for video, path in outputs.items():
        if path.resolve() in taken or count[path] > 1:
            raise ValueError(f'--out {out}: the output of {video}, {path}, '
                             'would overwrite another video')
    return outputs


def describe(prediction: 'VideoPrediction') -> list[tuple[str, int]]:
    """Return a line for each predicted class, and the class's number."""
    return [(f'{p.score:6.3f}  {p.label}', p.index)
            for p in prediction.predictions]


def caption_windows(windows: Sequence['VideoPrediction'], time: float
                    ) -> list[str | tuple[str, int]]:
    """Return the caption of the latest window that contains a time."""
    number = bisect_right(windows, time, key=lambda window: window.start)
    window = windows[max(0, number - 1)]
    lines = [f'{window.start:.2f} to {window.end:.2f} s', *describe(window)]
    # Windows may be shorter than the stride.
    return lines if time < window.end else [''] * len(lines)


def predict_windows(
        classifier: 'VideoClassifier', video: str, out: Path | None,
        args: argparse.Namespace) -> Iterator['VideoPrediction']:
    """Classify the windows of a video; the last result may be an error.

    ``out`` is the captioned video to write, or None.
    """
    from ..apis import VideoPrediction
    from ..visualization import annotate_video

    shown = []
    try:
        for window in classifier.windows(
                video, args.windows, args.stride, batch_size=args.batch_size,
                fps=args.fps):
            echo(f'{video}, {window.start:.2f} to {window.end:.2f} s')
            yield window
            if out is not None and window.error is None:
                shown.append(window)
        if shown:
            annotate_video(video, out, partial(caption_windows, shown))
            echo(f'written: {out}')
    except (ValueError, OSError) as error:
        yield VideoPrediction(video, error=describe_error(error))


def load_classifier(device: str, labels: str | None, config: str,
                    checkpoint: str | None, compile: bool = False
                    ) -> 'VideoClassifier':
    """Build a classifier, with the class names of a file."""
    from ..apis import VideoClassifier, read_labels

    names = read_labels(labels) if labels else None
    classifier = VideoClassifier(config, checkpoint, device, names,
                                 compile=compile)
    number = classifier.model.cls_head.num_classes
    if names and len(names) != number:
        raise ValueError(f'{labels} must have one name for each of the '
                         f'{number} classes of the model, got {len(names)}')
    return classifier


# The classifier of a process that predicts a part of a list.
classifier_of_process = lru_cache(1)(load_classifier)


def run(args: argparse.Namespace) -> None:
    from mmengine.logging import MMLogger

    from ..datasets.video_facts import IMAGE_SUFFIXES
    from ..utils.half_precision import amp
    from ._model_argument import split_model

    # Silence mmengine's warnings about its own deprecated calls.
    MMLogger.get_current_instance().setLevel(logging.ERROR)
    with one_line_errors():
        check(args)
        args.batch_size = args.batch_size or 1
        sources, *model = split_model([*args.videos, *args.model])
        pictures = [source for source in sources
                    if Path(source).suffix.lower() in IMAGE_SUFFIXES]
        if pictures:
            echo(f'note: {first_few(pictures)}: a single picture has no '
                 'motion, so its classes mean little; give a video, or a '
                 'folder of its frames', file=sys.stderr)
        if to_folder(args):
            predict_to_folder(args, sources, *model)
            return
        predict = predict_videos if args.segments is None else predict_segments
        with amp(args.device, args.amp):
            failed, count = predict(args, name_videos(sources), *model)
    if failed:
        # The error of a single video is the last line already.
        raise SystemExit(1 if count == 1 else (
            f'{program_name()}: {len(failed)} of {count} videos failed: '
            f'{printable(", ".join(failed))}'))


def predict_videos(args: argparse.Namespace, videos: dict[str, Path],
                   config: str, checkpoint: str | None
                   ) -> tuple[list[str], int]:
    """Classify videos or windows; return the failed videos, and a count."""
    from rich.console import Console
    from rich.progress import track

    from ..visualization import annotate_video

    outputs = plan_outputs(videos, args.out)
    if args.windows is not None and any(
            path.suffix != '.mp4' for path in outputs.values()):
        raise ValueError('--out must be an .mp4 file or a folder with '
                         f'--windows, got {args.out}')
    classifier = load_classifier(args.device, args.labels, config, checkpoint,
                                 args.compile)
    for path in filter(None, (args.json, args.json_lines, *outputs.values())):
        path.parent.mkdir(parents=True, exist_ok=True)
    if args.windows is None:
        predictions = classifier.each(
            videos, batch_size=args.batch_size, fps=args.fps)
    else:
        predictions = chain.from_iterable(
            predict_windows(classifier, video, outputs.pop(video, None), args)
            for video in videos)
    results, failed, number = [], [], 0
    with (args.json_lines.open('w') if args.json_lines else nullcontext()
          ) as lines, one_line_stop(
              lambda: f' after {count(number, "prediction")}'):
        for number, prediction in enumerate(track(
                predictions, 'Predicting', total=len(videos),
                console=Console(stderr=True),
                disable=len(videos) == 1 or args.windows is not None), 1):
            error = prediction.error
            if error is None:
                caption = describe(prediction)
                if args.windows is None:
                    echo(prediction.video)
                echo(*(line for line, _ in caption), sep='\n')
                if prediction.video in outputs:
                    out = outputs[prediction.video]
                    try:
                        annotate_video(prediction.video, out, caption)
                        echo(f'written: {out}')
                    except (ValueError, OSError) as fault:
                        error = describe_error(fault)
            result = prediction.as_dict()
            if error is not None:
                failed.append(prediction.video)
                result['error'] = error
                echo(f'{program_name()}: error: {error}', file=sys.stderr)
            if args.json:
                results.append(result)
            if lines is not None:
                echo(json.dumps(prediction.as_dict()), file=lines)
    if args.json:
        args.json.write_text(json.dumps(results, indent=2) + '\n')
    return failed, len(videos)


def write_prediction(out: Path, with_amp: bool, model: tuple, source: str,
                     name: str) -> None:
    """Write the prediction of a video, with this process's classifier."""
    from ..utils.files import write_atomically
    from ..utils.half_precision import amp
    from ..utils.remote_files import local_path

    classifier = classifier_of_process(*model)
    with amp(model[0], with_amp):
        result = classifier(local_path(source)).as_dict()
    text = json.dumps(dict(result, video=source))
    write_atomically(out / f'{name}.json', f'{text}\n', shared=True)


def predict_to_folder(args: argparse.Namespace, sources: Sequence[str],
                      config: str, checkpoint: str | None) -> None:
    """Classify a long list of videos, with a JSON file for each one."""
    from ..apis.many_videos import open_folder, plan_videos, process_videos

    videos = plan_videos(sources)
    model = args.device, args.labels, config, checkpoint
    # Build the network here first, to report errors once.
    classifier = classifier_of_process(*model)
    # The name does not end with .json, as names of videos do.
    open_folder(args.json, 'options', dict(
        config=hashlib.sha256(str(
            classifier.model.cfg.to_dict()).encode()).hexdigest(),
        model=config, checkpoint=checkpoint, labels=classifier.labels,
        **dict(amp=True) if args.amp else {}), 'predict')
    process_videos(
        'Predicting', videos, args.json, '.json',
        partial(write_prediction, args.json.absolute(), args.amp, model),
        engine=args.engine, processes=args.processes, device=args.device)


def predict_segments(args: argparse.Namespace, videos: dict[str, Path],
                     config: str, checkpoint: str | None
                     ) -> tuple[list[str], int]:
    """Write the actions in long videos as annotations; return as above."""
    from ..datasets.annotations import formats
    from ..live import StreamRun, load_live_model
    from ..live.segments import find_segments

    names = {video: name.as_posix() for video, name in videos.items()}
    if len({*names.values()}) < len(names):
        names = {video: Path(video).as_posix() for video in names}
    # Fail before the computation.
    formats.choose_format(args.segments, args.to, len(names))
    model = load_live_model(
        config, checkpoint, thresholds=args.thresholds, device=args.device,
        seconds=args.windows, stride=args.stride)
    segments, infos, failed = [], {}, []
    with one_line_stop(lambda: (
            f' after {len(infos)} of {len(names)} videos; nothing is written, '
            'and the same command starts from the beginning')):
        for video, name in names.items():
            try:
                run = StreamRun(model, video, fps=args.fps)
                found = find_segments(run, model.new_event_detector(), name)
            except (ValueError, OSError) as error:
                failed.append(video)
                echo(f'{program_name()}: error: {describe_error(error)}',
                     file=sys.stderr)
                continue
            segments += [one._replace(start=round(one.start, 3),
                                      end=round(one.end, 3)) for one in found]
            infos[name] = formats.VideoInfo(run.source.fps)
            echo(f'{video}: {count(found, "segment")}')
    if infos:
        for loss in formats.write_annotations(segments, args.segments,
                                              args.to, videos=infos):
            echo(f'note: {loss}')
        echo(f'written: {args.segments}')
    return failed, len(names)
