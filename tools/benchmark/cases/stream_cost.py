# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Cost of a stream's step by the length of its memory (Figure 6).

The case measures these streams, at the sizes of the THUMOS'14 models; memories
of all lengths use the same weights:

* smoothing: TeSTra, ``kernel='smoothing'``;
* window: TeSTra, ``kernel='window'``, which sums over the last N samples;
* cross-attention: LSTR, which also adds position embeddings;
* MAT: compresses the samples in each step, and generates a future;
* MiniROAD in the released size, and a causal transformer in the size of
  TeSTra's decoder, both without a long memory.

All memories are full. The last column is the growth from the shortest memory
to the longest. The tables below, which do not depend on the machine, have the
multiply-accumulates of a step and the size of a stream's state.

With the shortest memory, a step of the window kernel must have the scores of
the model on its window. While no sample has left the memory, smoothing must
have the scores of the window kernel. Streams without a long memory must have
the scores of the entire video.
"""
import argparse
from collections.abc import Callable
from typing import Any

import torch
from mmengine.config import DictAction
from torch import nn

from mmvidattn.apis import get_model, load_config
from mmvidattn.apis.complexity import count_complexity
from mmvidattn.online import StreamSession
from tools.benchmark.measure import (
    agreement_line,
    measure,
    relative,
    require_agreement,
    settings_of,
    title,
)

TOLERANCE = 1e-5
RATE = 4
KINDS = {
    'smoothing': ('testra_thumos14', 'smoothing'),
    'window': ('testra_thumos14', 'window'),
    'cross-attention': ('lstr_thumos14', 'window'),
    'MAT': ('mat_thumos14', 'window'),
    'MiniROAD': ('miniroad_thumos14', 'window'),
    'causal transformer': ('causal_transformer_thumos14', 'window'),
}


def options_of(config: str, options: dict[str, Any]) -> dict[str, Any]:
    """Drop backbone options that the config's backbone does not have."""
    prefix, backbone = 'model.backbone.', load_config(config).model.backbone
    return {
        key: value for key, value in options.items()
        if not key.startswith(prefix) or key.removeprefix(prefix) in backbone}


def counts_of(session: StreamSession) -> dict[str, float]:
    """Count the operations of a step and the bytes of a stream."""
    step = session.step
    frame = {
        name: step.example.new_zeros(1, channels)
        for name, channels in step.model.backbone.in_channels.items()
    }
    return dict(
        gmacs=count_complexity(step, frame, step.initial_state()).macs / 1e9,
        megabytes=session.num_bytes / 1e6)


def runner(session: StreamSession, steps: int) -> Callable:
    """Return a function that pushes steps of a stream with a full memory."""
    backbone = session.step.model.backbone
    frame = {
        name: torch.randn(channels, device=session.step.example.device)
        for name, channels in backbone.in_channels.items()
    }
    state = session.state_dict()
    # Set the state of a stream that has run for long.
    state['state']['count'].fill_(RATE * (
        backbone.long_memory_length + backbone.work_memory_length))
    for name in ('maximum', 'weight', 'total'):
        if name in state['state']:
            state['state'][name].fill_(1)
    session.load_state_dict(state)
    return lambda: [session.push(frame) for _ in range(steps)]


def check(models: dict[str, nn.Module]) -> dict[str, float]:
    """Return the relative differences of streams' scores, or exit."""
    result = {}
    for kind, model in models.items():
        backbone, kernel = model.backbone, KINDS[kind][1]
        long, work = backbone.long_memory_length, backbone.work_memory_length
        tokens = 1 + backbone.num_anticipation_tokens
        device = next(backbone.parameters()).device
        # In the smoothing kernel, the oldest sample is the first frame.
        length = RATE * long + (0 if kernel == 'smoothing' else work)
        video = {
            name: torch.randn(length, channels, device=device)
            for name, channels in backbone.in_channels.items()
        }
        got = StreamSession(model, RATE, kernel=kernel).push(video)['action']
        if kernel == 'smoothing':
            want = StreamSession(
                model, RATE, kernel='window').push(video)['action'][-1]
        elif not long:
            with torch.no_grad():
                want = model({name: x[None] for name, x in video.items()})
            want = want['action'][0, -1:]
        else:
            indices = torch.cat([torch.arange(0, RATE * long, RATE),
                                 torch.arange(RATE * long, length)])
            with torch.no_grad():
                want = model({name: x[indices.to(device)][None]
                              for name, x in video.items()})
            want = want['action'][0, -tokens:]
        result[kind] = relative(got[-1], want)
    require_agreement(result, TOLERANCE)
    return result


def run(args: argparse.Namespace) -> dict:
    torch.manual_seed(0)
    device = torch.device(args.device)
    functions, weights, agreement = {}, {}, {}
    counts = {name: {kind: {} for kind in args.kinds}
              for name in ('gmacs', 'megabytes')}
    for length in sorted(args.lengths):
        models = {}
        for kind in args.kinds:
            config, _ = KINDS[kind]
            model = get_model(config, device=device, cfg_options=options_of(
                config, {'model.backbone.long_memory_length': length,
                         **(args.cfg_options or {})}))
            shared = weights.setdefault(
                type(model.backbone), model.state_dict())
            model.load_state_dict(shared, assign=True)
            models[kind] = model
        agreement = agreement or check(models)
        for kind, model in models.items():
            session = StreamSession(model, RATE, kernel=KINDS[kind][1])
            for name, value in counts_of(session).items():
                counts[name][kind][length] = value
            functions[kind, length] = runner(session, args.steps)
    seconds = measure(functions, args.repeats, device)
    milliseconds = {
        kind: {length: 1e3 * seconds[kind, length] / args.steps
               for length in sorted(args.lengths)}
        for kind in args.kinds
    }
    result = settings_of(
        args, steps=args.steps, agreement=agreement,
        milliseconds=milliseconds, **counts,
        growth={
            kind: values[max(values)] / values[min(values)]
            for kind, values in milliseconds.items()
        })
    if args.figure:
        draw(result, args.figure)
    return result


def report(result: dict) -> str:
    lines = [
        title(result, 'float32', f'{result["steps"]} steps',
              'milliseconds per step'),
        agreement_line(result['agreement'])
    ]
    lengths = next(iter(result['milliseconds'].values()))
    lines.append(f'{"N":18}' + ''.join(f'{n:9}' for n in lengths)
                 + '   growth')
    for kind, values in result['milliseconds'].items():
        lines.append(f'{kind:18}'
                     + ''.join(f'{v:9.2f}' for v in values.values())
                     + f'{result["growth"][kind]:9.2f}')
    for name, head in (('gmacs', 'GMACs per step'),
                       ('megabytes', 'MB per stream')):
        lines.append(head)
        lines += (f'{kind:18}' + ''.join(f'{v:9.3f}' for v in values.values())
                  for kind, values in result[name].items())
    return '\n'.join(lines)


def draw(result: dict, path: str) -> None:
    import matplotlib
    matplotlib.use('Agg')
    import matplotlib.pyplot as plt
    figure, axes = plt.subplots(figsize=(5, 3.2), layout='constrained')
    for (kind, values), marker in zip(result['milliseconds'].items(),
                                      'os^Dvx'):
        axes.plot(list(values), list(values.values()), marker, ls='-',
                  label=kind)
    lengths = list(values)
    axes.set_xscale('log', base=2)
    axes.set_xticks(lengths, lengths)
    axes.set_ylim(bottom=0)
    axes.set_xlabel('samples of the long memory')
    axes.set_ylabel('milliseconds per step')
    axes.set_title(result['machine'], fontsize=8)
    axes.grid(alpha=0.3)
    axes.legend()
    figure.savefig(path, dpi=150)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        '--lengths', type=int, nargs='+', default=[32, 128, 512, 2048, 8192])
    parser.add_argument(
        '--kinds', nargs='+', choices=KINDS, default=list(KINDS),
        metavar='KIND', help=f'kinds of {", ".join(KINDS)} (default: all)')
    parser.add_argument('--steps', type=int, default=16)
    parser.add_argument('--figure', help='draw the figure to this file')
    parser.add_argument('--cfg-options', nargs='+', action=DictAction)
    parser.set_defaults(repeats=7)
