# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""What a step of a stream costs, by the length of its memory (Figure 6).

    python tools/benchmark/stream_cost.py --figure cost.png --json cost.json

Streams of models that share their weights, in one process and in turns, at
the sizes of THUMOS'14:

* smoothing: TeSTra, ``kernel='smoothing'``;
* window: TeSTra, ``kernel='window'``, which sums over the latest N samples;
* cross-attention: LSTR, which besides adds what their places do.

All memories are full. The last column is the growth from the shortest memory
to the longest.
"""
import argparse
import json
import sys
from collections.abc import Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import mmvidattn  # noqa: E402  isort: skip
import torch  # noqa: E402
from mmengine.config import DictAction  # noqa: E402
from side_by_side import machine, measure  # noqa: E402
from torch import nn  # noqa: E402

from mmvidattn.apis import get_model  # noqa: E402
from mmvidattn.online import StreamSession  # noqa: E402

RATE = 4
KINDS = {
    'smoothing': ('testra_thumos14', 'smoothing'),
    'window': ('testra_thumos14', 'window'),
    'cross-attention': ('lstr_thumos14', 'window'),
}


def runner(model: nn.Module, kernel: str, steps: int) -> Callable:
    """Pushes steps of a stream whose memory is full."""
    session = StreamSession(model, RATE, kernel=kernel)
    frame = {
        name: torch.randn(channels, device=model.backbone.positions.device)
        for name, channels in model.backbone.in_channels.items()
    }
    state = session.state_dict()
    # As if it had run for long.
    state['state']['count'].fill_(RATE * (model.backbone.positions.shape[0]))
    for name in ('maximum', 'weight', 'total'):
        if name in state['state']:
            state['state'][name].fill_(1)
    session.load_state_dict(state)
    return lambda: [session.push(frame) for _ in range(steps)]


def compare(args: argparse.Namespace) -> dict:
    torch.manual_seed(0)
    device = torch.device(args.device)
    functions, weights = {}, None
    for length in sorted(args.lengths):
        for kind, (config, kernel) in KINDS.items():
            model = get_model(config, device=device, cfg_options={
                'model.backbone.long_memory_length': length,
                **(args.cfg_options or {})
            })
            weights = weights or model.state_dict()
            model.load_state_dict(weights, assign=True)
            functions[kind, length] = runner(model, kernel, args.steps)
    seconds = measure(functions, args.repeats, device)
    milliseconds = {
        kind: {length: 1e3 * seconds[kind, length] / args.steps
               for length in sorted(args.lengths)}
        for kind in KINDS
    }
    return dict(
        version=mmvidattn.__version__,
        machine=machine(device),
        torch=torch.__version__,
        dtype='float32',
        steps=args.steps,
        repeats=args.repeats,
        milliseconds=milliseconds,
        growth={
            kind: values[max(values)] / values[min(values)]
            for kind, values in milliseconds.items()
        })


def report(result: dict) -> None:
    print(f'{result["machine"]}; torch {result["torch"]}; float32; '
          f'{result["steps"]} steps, median of {result["repeats"]}; '
          'milliseconds a step')
    lengths = next(iter(result['milliseconds'].values()))
    print(f'{"N":16}' + ''.join(f'{n:9}' for n in lengths) + '   growth')
    for kind, values in result['milliseconds'].items():
        print(f'{kind:16}' + ''.join(f'{v:9.2f}' for v in values.values())
              + f'{result["growth"][kind]:9.2f}')


def draw(result: dict, path: str) -> None:
    import matplotlib
    matplotlib.use('Agg')
    import matplotlib.pyplot as plt
    figure, axes = plt.subplots(figsize=(5, 3.2), layout='constrained')
    for (kind, values), marker in zip(result['milliseconds'].items(), 'os^'):
        axes.plot(list(values), list(values.values()), marker, ls='-',
                  label=kind)
    lengths = list(values)
    axes.set_xscale('log', base=2)
    axes.set_xticks(lengths, lengths)
    axes.set_ylim(bottom=0)
    axes.set_xlabel('samples of the long memory')
    axes.set_ylabel('milliseconds a step')
    axes.set_title(result['machine'], fontsize=8)
    axes.grid(alpha=0.3)
    axes.legend()
    figure.savefig(path, dpi=150)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        '--lengths', type=int, nargs='+', default=[32, 128, 512, 2048, 8192])
    parser.add_argument('--steps', type=int, default=16)
    parser.add_argument('--repeats', type=int, default=7)
    parser.add_argument(
        '--device', default='cuda' if torch.cuda.is_available() else 'cpu')
    parser.add_argument('--figure', help='draw the figure to this file')
    parser.add_argument('--json', help='write the figures to this file')
    parser.add_argument('--cfg-options', nargs='+', action=DictAction)
    args = parser.parse_args()
    result = compare(args)
    report(result)
    if args.figure:
        draw(result, args.figure)
    if args.json:
        Path(args.json).write_text(json.dumps(result, indent=2))


if __name__ == '__main__':
    main()
