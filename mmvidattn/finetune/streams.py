# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Detectors of events in long videos: config, features, results."""
import json
import shlex
import shutil
import statistics
from dataclasses import replace
from pathlib import Path

import numpy as np
from mmengine.config import Config
from mmengine.device import get_device
from mmengine.registry import init_default_scope

from ..apis.bundle import save_bundle
from ..apis.labels import read_labels
from ..apis.models import load_config
from ..datasets.annotations.segment_csv import (
    read_segment_csv,
    write_segment_csv,
)
from ..datasets.prepare.feature_targets import (
    feature_lengths,
    named_targets,
    stream_name,
    write_targets,
)
from ..datasets.prepare.files import Output, npy_bytes
from ..evaluation.events import detect_events, tune_thresholds
from ..live.features import FeatureExtractor, VideoFeatures
from ..online.frame_scores import FrameScores, ScoredVideos
from ..utils.files import write_atomically
from ..utils.printable import echo
from ..utils.remote_files import HUB
from ..utils.text_files import read_lines
from ..visualization.score_curves import draw_timelines
from . import training
from .options import FineTuneOptions
from .plan import Plan, progress_bar
from .report import format_events, measure_events, write_metrics

# Configs that a run inherits, for each kind of model, and their metrics.
BASES = dict(pixels='linear_ff_causal_tiny_synthetic',
             features='testra_tiny_videos')
METRIC = dict(pixels='online/mAP_stream',
              features='online/mAP_non_overlapping')
# A network of pixels reads at least this number of frames of a short event,
# the 10th percentile of the durations, within the limits of the frame rate.
FRAMES = 20
RATES = 2., 25.
# Side in pixels of its images and of a patch. The images are smaller if the
# time allows fewer updates than MIN_UPDATES.
SIDES = 64, 32
PATCH = 8
MIN_UPDATES = 300
# Frames of a clip, and number of videos that are read in parallel.
CLIP_FRAMES, MAX_ROWS = 128, 4
# Steps per second of features; seconds of the long and the work memory; videos
# per batch.
FEATURE_RATE = 4
LONG_SECONDS, WORK_SECONDS = 16, 4
FEATURE_ROWS = 8
THRESHOLDS = 'thresholds.json'


def complete_options(options: FineTuneOptions) -> FineTuneOptions:
    """Choose the weights of the frozen network; a file as absolute path.

    Raises:
        ValueError: If the network needs weights.
    """
    network = options.features
    weights = training.find_start(options.weights, network)
    if weights is not None and Path(weights).is_file():
        weights = str(Path(weights).resolve())
    if options.model == 'features' and weights is None and (
            not network.startswith(HUB)):
        raise ValueError(f'--features {network} needs --weights, because the '
                         'package has no weights of this network')
    return replace(options, weights=weights)


def load_base(options: FineTuneOptions) -> Config:
    """Read the config that a run inherits."""
    return load_config(BASES[options.model])


def set_config(cfg: Config, options: FineTuneOptions, plan: Plan) -> None:
    """Change the config of a model to the config of a run."""
    data, of_pixels = (options.out / 'data').resolve(), _is_pixels(cfg)
    durations = plan.seconds(*plan.splits)
    long, work = LONG_SECONDS * FEATURE_RATE, WORK_SECONDS * FEATURE_RATE
    dataset = dict(data_root=str(data),
                   metainfo=dict(classes=str(data / 'classes.txt')))
    if of_pixels:
        rate = _frame_rate(plan)
        half_life = max(8, round(rate * statistics.median(durations)))
        cfg.model.backbone.encoder.update(
            patch_size=PATCH, patch_stride=PATCH,
            decay=dict(half_life=(2, half_life)))
        dataset |= dict(data_prefix=dict(video=str(plan.root.resolve())),
                        frame_rate=rate, clip_frames=CLIP_FRAMES)
        batch = min(MAX_ROWS, len(plan.videos['train']))
    else:
        cfg.model.backbone.update(
            long_memory_length=long, work_memory_length=work)
        dataset |= dict(long_steps=long, work_steps=work)
        cfg.online.extractors = dict(rgb=dict(
            config=options.features, checkpoint=options.weights))
        batch = FEATURE_ROWS
    cfg.model.cls_head.num_classes = len(plan.classes)
    for split, name in training.used_splits(cfg, plan.splits):
        loader = cfg[f'{split}_dataloader']
        loader.dataset.update(dataset, **dict(
            ann_file=f'{name}.csv', video_list=str(data / f'{name}_videos.txt')
        ) if of_pixels else dict(ann_file=f'{name}_features.txt'))
        if split == 'train':
            loader.update(batch_size=options.batch_size or batch,
                          num_workers=options.workers,
                          persistent_workers=options.workers > 0)
    if of_pixels:
        _set_side(cfg, SIDES[0])
    if options.lr:
        cfg.optim_wrapper.optimizer.lr = options.lr
    cfg.param_scheduler = [cfg.param_scheduler]
    cfg.online.events.min_duration = round(min(durations) / 2, 2)
    training.finish_config(
        cfg, options.seed,
        METRIC[options.model] if 'val' in plan.splits else None)


def _is_pixels(cfg: Config) -> bool:
    """Return True if the model of a run reads pixels."""
    return cfg.model.backbone.type == 'OnlineVideoEncoder'


def _frame_rate(plan: Plan) -> float:
    """Return the frames per second that a network of pixels reads."""
    fps = statistics.median(one.fps for one in plan.facts.values())
    short = float(np.percentile(plan.seconds(*plan.splits), 10))
    rate = min(max(FRAMES / short, RATES[0]), RATES[1], fps)
    return float(f'{rate:.2g}')


def _set_side(cfg: Config, side: int) -> None:
    """Set the side of the images that a network of pixels reads."""
    cfg.model.backbone.encoder.img_size = side
    pipelines = [cfg.get('test_pipeline'), cfg.get('val_pipeline')] + [
        cfg[f'{split}_dataloader'].dataset.pipeline
        for split in ('train', 'val', 'test') if cfg[f'{split}_dataloader']]
    for step in (step for steps in pipelines for step in steps or ()):
        if step.type == 'Resize':
            step.scale = (side, side)


def write_data(cfg: Config, options: FineTuneOptions, plan: Plan) -> None:
    """Write the features of all videos, unless the model reads pixels."""
    if _is_pixels(cfg):
        return
    init_default_scope('mmaction')
    extractor = FeatureExtractor(options.features, options.weights,
                                 get_device())
    write_features(plan, extractor, options.out / 'data')
    cfg.model.backbone.in_channels = dict(rgb=extractor.width)


def reduce_images(out: Path, updates: int) -> None:
    """Choose small images, because too few updates of large ones fit."""
    cfg = load_config(out / 'config.py')
    large, small = SIDES
    _set_side(cfg, small)
    training.write_config(out, cfg)
    echo(f'images of {small} x {small}: only {updates} updates of '
         f'{large} x {large} fit into the time; with more --minutes, more '
         'fit')


def write_features(plan: Plan, extractor: FeatureExtractor,
                   folder: Path) -> None:
    """Write the features, the targets and the lists of all videos.

    Features that exist already, from an earlier run, are kept.

    Raises:
        ValueError: If two videos would have the same file of features.
    """
    extract = VideoFeatures(extractor, FEATURE_RATE)
    videos = [video for side in plan.videos.values() for video in side]
    names: dict[str, str] = {}
    for video in videos:
        other = names.setdefault(stream_name(video), video)
        if other != video:
            raise ValueError(f'the features of {other} and {video} would have '
                             f'the same name, {stream_name(video)}.npy: '
                             'rename one of them')
    with progress_bar() as bar:
        for video in bar.track(videos, description='Extracting features'):
            path = folder / f'rgb/{stream_name(video)}.npy'
            if not path.is_file():
                write_atomically(path, npy_bytes(extract(plan.root / video)))
    write_targets(
        Output(folder, force=True),
        [one._replace(video=stream_name(one.video))
         for split in plan.splits for one in plan.segments(split)],
        feature_lengths([folder / 'rgb']), named_targets(plan.classes),
        FEATURE_RATE, lists={f'{split}_features': [*map(stream_name, side)]
                             for split, side in plan.videos.items()})


def write_results(out: Path, checkpoint: str) -> None:
    """Write the thresholds, the metrics, the images and the bundle.

    ``checkpoint`` is the name of the checkpoint with these weights.
    """
    cfg = load_config(out / 'config.py')
    classes = read_labels(out / 'data/classes.txt')
    events = dict(cfg.online.events)
    if cfg.get('val_dataloader') is not None:
        split = 'val'
        scores, frames = _score(out, cfg, split, classes)
        truth = read_segment_csv(out / 'data/val.csv')
        tuned = tune_thresholds(scores, truth, classes)
        tuned.write(out / THRESHOLDS)
        if tuned.warning:
            echo(f'note: {tuned.warning}')
        if (out / 'data/test.csv').is_file():
            split = 'test'
            scores, frames = _score(out, cfg, split, classes)
            truth = read_segment_csv(out / 'data/test.csv')
        found = detect_events(scores, classes, thresholds=tuned.classes)
        write_segment_csv(found, out / 'predictions.csv')
        draw_timelines(out / 'timelines.png', {
            video: [[(one.start, one.end, one.labels['action'])
                     for one in side if one.video == video]
                    for side in (truth, found)]
            for video in scores}, classes[1:])
        metrics = dict(
            checkpoint=checkpoint, split=split, videos=len(scores),
            frames=frames,
            tuned=measure_events(found, truth, scores, classes))
        write_metrics(out, metrics)
        echo(format_events(metrics))
        events = dict(thresholds=tuned.classes)
    if _is_pixels(cfg):
        save_bundle(out / training.BUNDLE, cfg, out / 'best.pth', classes,
                    events, replace=True)


def _score(out: Path, cfg: Config, split: str, classes: list[str]
           ) -> tuple[dict[str, FrameScores], dict[str, float]]:
    """Score the videos of a split with ``best.pth``, like a stream.

    Return and write the scores of each video; also return metrics of frames.
    """
    videos = out / f'data/{split}_videos.txt'
    names = read_lines(videos)
    if _is_pixels(cfg):
        runner, samples, frames = training.run_test(
            out, split, ann_file=f'{split}.csv', video_list=str(videos))
        loaded = runner.test_dataloader.dataset
        rates = dict(zip(loaded.videos, loaded.rates))
        names = {name: name for name in names}
    else:
        _, samples, frames = training.run_test(
            out, split, ann_file=f'{split}_features.txt', windows='stream')
        names = {stream_name(name): name for name in names}
        rates = dict.fromkeys(names, FEATURE_RATE)
    scores = {
        names[one.video_name]: FrameScores(
            rates[one.video_name], one.pred_action.float().cpu().numpy())
        for one in samples}
    folder = out / f'scores/{split}'
    shutil.rmtree(folder, ignore_errors=True)
    ScoredVideos(classes, {0}, scores).write(folder)
    return scores, frames


def describe_use(out: Path) -> str:
    """Return the commands that use the model."""
    def quoted(name: str) -> str:
        return shlex.quote(str(out / name))

    model = quoted(training.BUNDLE)
    if not (out / training.BUNDLE).exists():
        model = f'{quoted("config.py")} {quoted("best.pth")}'
        if (out / THRESHOLDS).is_file():
            model += f' --thresholds {quoted(THRESHOLDS)}'
    use = f'''Detect events in a video, or live from camera 0, on a page:
    mmvidattn stream VIDEO {model} --events events.jsonl
    mmvidattn stream 0 {model} --serve'''
    if (out / 'predictions.csv').is_file():
        split = json.loads((out / 'metrics.json').read_text('utf-8'))['split']
        videos = shlex.quote(training.read_notes(out)['options']['videos'])
        use += f'''
Write a report with more metrics and plots:
    mmvidattn score {quoted("predictions.csv")} \\
        {quoted(f"data/{split}.csv")} --videos {videos} \\
        --scores {quoted(f"scores/{split}")} --report {quoted("report")}'''
    return use
