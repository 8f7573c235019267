# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Speed of dense evaluation, beside a plain loop over batches of windows.

    python tools/benchmark/online_dense.py --json results.json

Both score the last step of each of many consecutive windows of one video, with
the same random weights, in one run and in turns:

* dense: ``dense_features``, which computes once what windows share;
* windows: the model itself, a batch of windows at a time.

Nothing is timed unless the scores agree.
"""
import argparse
import json
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import mmvidattn  # noqa: E402  isort: skip
import torch  # noqa: E402
from mmengine.config import DictAction  # noqa: E402
from side_by_side import (  # noqa: E402
    machine,
    measure,
    relative,
    require_agreement,
)
from torch import Tensor, nn  # noqa: E402

from mmvidattn.apis import get_model, load_config  # noqa: E402
from mmvidattn.online import dense_features  # noqa: E402

TOLERANCE = 1e-5


def tables(model: nn.Module, steps: int,
           rate: int) -> tuple[int, Tensor, Tensor]:
    """Frames of a video, and of each window's long and work memory.

    The long memory of the first window is full.
    """
    N, L = model.long_memory_length, model.work_memory_length
    starts = torch.arange(steps)[:, None] + rate * N
    long = starts + rate * torch.arange(-N, 0)
    work = starts + torch.arange(L)
    return int(work.max()) + 1, long, work


def compare(args: argparse.Namespace) -> dict:
    torch.manual_seed(0)
    device = torch.device(args.device)
    rate = load_config(args.config).test_dataloader.dataset.get('long_rate', 4)
    model = get_model(
        args.config, device=device, cfg_options=args.cfg_options)
    backbone, head = model.backbone, model.cls_head
    length, long, work = tables(backbone, args.steps, rate)
    long, work = long.to(device), work.to(device)
    video = {
        name: torch.randn(length, channels, device=device)
        for name, channels in backbone.in_channels.items()
    }
    last = backbone.work_memory_length - 1

    def dense() -> Tensor:
        with torch.no_grad():
            return head(dense_features(
                backbone, video, long, work,
                batch_size=args.batch_size))['action']

    def windows() -> Tensor:
        scores = []
        with torch.no_grad():
            for batch in zip(long.split(args.batch_size),
                             work.split(args.batch_size)):
                indices = torch.cat(batch, dim=1)
                scores.append(model({
                    name: x[indices] for name, x in video.items()
                })['action'][:, last:])
        return torch.cat(scores)

    ours, plain = dense(), windows()
    agreement = dict(
        relative=relative(ours, plain),
        probability=(ours.softmax(-1) - plain.softmax(-1)).abs().max().item())
    require_agreement(agreement, TOLERANCE)
    seconds = measure(
        dict(dense=dense, windows=windows), args.repeats, device)
    result = dict(
        version=mmvidattn.__version__,
        config=str(args.config),
        machine=machine(device),
        torch=torch.__version__,
        dtype='float32',
        steps=args.steps,
        batch_size=args.batch_size,
        repeats=args.repeats,
        agreement=agreement,
        seconds=seconds,
        ratio=seconds['windows'] / seconds['dense'])
    print(f'{result["machine"]}; torch {torch.__version__}; float32; '
          f'{args.config}; {args.steps} steps, {args.batch_size} at a time; '
          f'median of {args.repeats}')
    print(f'the scores agree: {agreement["relative"]:.1e} (relative), '
          f'{agreement["probability"]:.1e} (largest, of a probability)')
    for name, value in seconds.items():
        print(f'{name:10}{value:10.2f} s{1e3 * value / args.steps:10.2f} ms a '
              f'step{value / seconds["dense"]:10.2f} x')
    return result


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument('--config', default='testra_thumos14')
    parser.add_argument('--steps', type=int, default=1000)
    parser.add_argument('--batch-size', type=int, default=16)
    parser.add_argument('--repeats', type=int, default=3)
    parser.add_argument(
        '--device', default='cuda' if torch.cuda.is_available() else 'cpu')
    parser.add_argument('--json', help='write the figures to this file')
    parser.add_argument('--cfg-options', nargs='+', action=DictAction)
    args = parser.parse_args()
    result = compare(args)
    if args.json:
        Path(args.json).write_text(json.dumps(result, indent=2))


if __name__ == '__main__':
    main()
