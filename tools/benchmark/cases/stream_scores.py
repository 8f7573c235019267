# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Scores, speed and memory of streams on a data set.

    run.py stream_scores CHECKPOINT --config testra_tiny_synthetic

The test set of a config with PerFrameMAP is evaluated in windows, as streams
with each kernel, and as a transcription of the released streams. The window
kernel must have the same scores as the windows.
"""
import argparse
import statistics
import time
from collections.abc import Iterable
from itertools import islice

import torch
from mmaction.registry import DATASETS, METRICS
from mmengine.dataset import BaseDataset, pseudo_collate
from mmengine.evaluator import BaseMetric
from mmengine.structures import BaseDataElement
from torch import nn

from mmvidattn.apis import get_model, load_config
from tools.benchmark.measure import (
    add_online_model,
    require_agreement,
    settings_of,
    title,
)
from tools.benchmark.references.testra_stream import TranscribedStream
from tools.harness import table

TOLERANCE = 1e-5
COST = 'stream_steps_per_second', 'stream_state_bytes'


def chunks(dataset: BaseDataset, size: int) -> Iterable[dict]:
    """Yield batches of a data set."""
    items = (dataset[i] for i in range(len(dataset)))
    while batch := list(islice(items, size)):
        yield pseudo_collate(batch)


def score_ours(model: nn.Module, dataset: BaseDataset, metric: BaseMetric,
               streams: int = 1) -> tuple[dict, list]:
    """Return the results, and the scores of each video."""
    scores = []
    with torch.no_grad():
        for batch in chunks(dataset, streams):
            for sample in model.test_step(batch):
                metric.process(None, [sample.to_dict()])
                scores.append(
                    sample.pred_action[:sample.video_length].cpu())
    return _named(metric.evaluate(len(dataset))), scores


def score_released(model: nn.Module, dataset: BaseDataset,
                   metric: BaseMetric) -> dict:
    """Return the results of the released streams.

    All steps of their first window are scored.
    """
    length = model.backbone.work_memory_length
    with torch.no_grad():
        for batch in chunks(dataset, 1):
            data = model.data_preprocessor(batch)
            video, sample = data['inputs'][0], data['data_samples'][0]
            stream = TranscribedStream(model, video['long_rate'],
                                       video['work_rate'])
            start = time.perf_counter()
            rows = [stream.push({
                name: video[name][t] for name in model.backbone.in_channels
            }) for t in range(sample.video_length)]
            seconds = time.perf_counter() - start
            rows = [row for row in rows if row is not None]
            if not rows:
                raise ValueError(
                    f'{sample.video_name}: released streams need at least '
                    f'{length} steps, got {sample.video_length}')
            now = torch.stack([row[length - 1] for row in rows[1:]])
            _set_scores(model, sample, 'pred_', torch.cat(
                [rows[0][:length], now]))
            _set_scores(model, sample, 'pred_anticipated_', torch.stack(
                [row[length:] for row in rows]))
            sample.set_metainfo(dict(
                evaluation_mode='stream_released',
                stream_cost=dict(steps=sample.video_length, seconds=seconds,
                                 state_bytes=0)))
            metric.process(None, [sample.to_dict()])
    return _named(metric.evaluate(len(dataset)))


def _set_scores(model: nn.Module, sample: BaseDataElement, prefix: str,
                logits: torch.Tensor) -> None:
    scores = model.cls_head.scores(dict(action=logits))
    sample.set_data({prefix + name: y for name, y in scores.items()})


def _named(metrics: dict[str, float]) -> dict[str, float]:
    """Select detection, mean anticipation, and cost."""
    named = {}
    for key, value in metrics.items():
        name = key.split('/')[-1]
        if name in COST:
            named[name] = value
        elif name.endswith('@mean'):
            named['anticipation'] = value
        elif not named:
            named['mAP'] = value
    return named


def run(args: argparse.Namespace) -> dict:
    cfg = load_config(args.config, args.cfg_options)
    model = get_model(
        args.config, args.checkpoint, args.device, args.cfg_options)

    def build(windows: str) -> tuple[BaseDataset, BaseMetric]:
        dataset = DATASETS.build(
            dict(cfg.test_dataloader.dataset, windows=windows))
        metric = METRICS.build(dict(cfg.test_evaluator))
        metric.dataset_meta = dataset.metainfo
        return dataset, metric

    result, expected = score_ours(model, *build('videos'))
    results: dict[str, list[dict]] = {'windows': [result]}
    differences = {}
    for _ in range(args.repeats):
        for kernel in args.kernels:
            model.stream_kernel = kernel
            for streams in args.streams:
                name = f'{kernel} x {streams}'
                result, scores = score_ours(model, *build('stream'), streams)
                results.setdefault(name, []).append(result)
                if kernel == 'window':
                    differences[name] = max((a - b).abs().max().item()
                                            for a, b in zip(expected, scores))
        if differences:
            require_agreement(differences, TOLERANCE)
        if args.released:
            results.setdefault('released', []).append(
                score_released(model, *build('stream')))
    # Take the median of the costs; the scores are the same in each turn.
    results = {name: dict(turns[0], **{
        key: statistics.median(turn[key] for turn in turns)
        for key in COST if key in turns[0]
    }) for name, turns in results.items()}
    return settings_of(args, config=str(args.config), results=results,
                       agreement=differences)


def report(result: dict) -> str:
    lines = [title(result, result['config'])]
    for name, value in result['agreement'].items():
        lines.append(f'{name}: scores differ from windows by at most '
                     f'{value:.1e}')
    rows = []
    for name, row in result['results'].items():
        cells = [name, *(f'{100 * row[key]:.3f}' if key in row else ''
                         for key in ('mAP', 'anticipation'))]
        speed, size = (row.get(key) for key in COST)
        cells += [f'{speed:.0f}' if speed else '',
                  f'{size / 1e3:.0f}' if size else '']
        rows.append(cells)
    return '\n'.join(lines + table(
        ('', 'mAP', 'mean anticipation mAP', 'steps/s', 'kB per stream'),
        rows))


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument('checkpoint')
    parser.add_argument('--streams', type=int, nargs='+', default=[1, 16],
                        help='videos per batch (default: 1 16)')
    parser.add_argument('--kernels', nargs='+',
                        default=['window', 'smoothing'])
    parser.add_argument('--no-released', dest='released',
                        action='store_false',
                        help='leave out the released streams')
    add_online_model(parser)
