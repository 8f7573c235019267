# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Compare all attentions, and write the tables of docs/attentions.md.

    python tools/benchmark/attentions.py OUT --data data/motion
    python tools/benchmark/attentions.py OUT --rows mala rala --seeds 0

Each row of configs/attentions/ablations/motion.py is measured in a
process of its own, which saves each result in OUT/ROW.json. The same command
resumes: it measures what the files do not have, and writes the page.

Costs, memory and times are of an attention of 512 channels and 8 heads for a
clip with 16 x 16 tokens per frame, without projections and with the default
options of its class. Times are medians. A clip is not measured if its training
step would take longer than --limit. The accuracy is of the row's config on the
motion set of tools/data/motion/make_motion.py, trained once for each seed, for
five epochs instead of ten.
"""
import argparse
import json
import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import torch
from matplotlib.figure import Figure
from torch import Tensor, nn

from mmvidattn.apis.complexity import count_complexity
from mmvidattn.apis.config import list_rows, load_config
from mmvidattn.commands import main as run_command
from mmvidattn.layers import VideoSelfAttention
from mmvidattn.utils.paired_test import decide

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
from tools.benchmark import common

PREFIX = 'linear_ff_motion_'
ROWS = {row.name.removeprefix(PREFIX): row for row in list_rows()
        if row.name.startswith(PREFIX)}
CHANNELS, HEADS, SIDE = 512, 8, 16
PAGE, PICTURE = common.ROOT / 'docs/attentions.md', 'attention_costs.svg'
START, END = '<!-- generated -->', '<!-- end of generated -->'
EPOCHS = 5
ACCURACY = f"""The accuracy (mean and standard deviation of the seeds, in
percent) is that of `linear_ff_tiny_motion`, or of
`linear_ff_causal_tiny_motion`, with this attention and without feature
fixation, after {EPOCHS} epochs, so slow learners have low values. The last
column is the mean difference from softmax with the same seeds, with an
interval of 98.3 %."""
# Tokens of the picture, and of the columns on memory.
SHOWN = 16384


class Attend(nn.Module):
    """Attention of a backbone without projections, for clips of any length."""

    def __init__(self, backbone: dict, num_frames: int) -> None:
        super().__init__()
        self.is_causal = backbone.get('pattern') == 'causal'
        attention = {key: value for key, value in backbone['attention'].items()
                     if not key.startswith('num_')}
        self.layer = VideoSelfAttention(
            CHANNELS, HEADS, attention, (num_frames, SIDE, SIDE),
            pattern='causal' if self.is_causal else 'joint',
            fixation=backbone['fixation'], decay=backbone.get('decay'))

    def forward(self, qkv: Tensor) -> Tensor:
        """Attend with projections [1, T, H, W, 3 C]."""
        state = self.layer.initial_state(
            qkv[..., :CHANNELS]) if self.is_causal else None
        return self.layer._mix(qkv, state)


def build(backbone: dict, tokens: int, args: argparse.Namespace
          ) -> tuple[Attend, Tensor]:
    """Return a module and its input, the same in each call."""
    torch.manual_seed(0)
    num_frames = tokens // SIDE**2
    module = Attend(backbone, num_frames).eval()
    x = torch.randn(1, num_frames, SIDE, SIDE, 3 * CHANNELS)
    return (module.to(args.device, common.DTYPES[args.dtype]),
            x.to(args.device, common.DTYPES[args.dtype]))


def measure(backbone: dict, tokens: int, args: argparse.Namespace
            ) -> dict[str, float]:
    """Measure the forward pass and a training step: seconds and GiB."""
    module, x = build(backbone, tokens, args)
    attend = torch.compile(module) if args.compile else module
    on_gpu = torch.device(args.device).type == 'cuda'

    def step() -> None:
        leaf = x.detach().requires_grad_()
        attend(leaf).float().square().mean().backward()
        module.zero_grad(set_to_none=True)

    results = {}
    for name, task in dict(forward=torch.no_grad()(lambda: attend(x)),
                           step=step).items():
        torch.cuda.reset_peak_memory_stats() if on_gpu else \
            common.forget_peak()
        before, times = common.resident(), []
        while len(times) <= args.repeats and sum(times) <= args.limit:
            start = time.perf_counter()
            task()
            common.synchronize(args.device)
            times.append(time.perf_counter() - start)
        peak = torch.cuda.max_memory_allocated() if on_gpu else (
            common.resident('VmHWM') - before)
        # The first call is a warm-up.
        results[name] = statistics.median(times[1:] or times)
        results[f'{name} GiB'] = peak / 2**30
    return results


def train(name: str, seed: int, args: argparse.Namespace) -> float:
    """Train a row's config with a seed; return the accuracy in percent."""
    folder = args.out / 'runs' / f'{name}_{seed}'
    run_command(['train', PREFIX + name, '--seed', str(seed), '--resume',
                 '--work-dir', str(folder), '--cfg-options',
                 f'data_root={args.data.resolve()}',
                 f'train_cfg.max_epochs={EPOCHS}',
                 f'train_cfg.val_interval={EPOCHS}',
                 f'param_scheduler.1.T_max={EPOCHS}',
                 f'param_scheduler.1.end={EPOCHS}'])
    log = max(folder.glob('*/vis_data/scalars.json'))
    scores = [json.loads(line) for line in log.read_text().splitlines()]
    return 100 * [x['acc/top1'] for x in scores if 'acc/top1' in x][-1]


def measure_row(name: str, args: argparse.Namespace) -> None:
    """Measure what the file of a row does not have yet."""
    file = args.out / f'{name}.json'
    row = json.loads(file.read_text()) if file.exists() else {}

    def save(key: str, value: Any) -> None:
        row[key] = value
        file.write_text(json.dumps(row, indent=1) + '\n')

    backbone = load_config(PREFIX + name).model.backbone.to_dict()
    if 'error' not in row:
        save('machine', f'{common.machine(args.device)}, {args.dtype}'
             f'{", compiled" if args.compile else ""}')
        meta = argparse.Namespace(device='meta', dtype='float32')
        save('macs', count_complexity(*build(backbone, SHOWN, meta)).macs)
        with torch.no_grad():
            module, x = build(backbone, 1024, args)
            y = module(x)
            save('error', common.relative(y, module.double()(x.double())))
    last = 0.
    for tokens in args.tokens:
        # Quadratic costs grow by 16 from one size to the next.
        if f'{tokens}' not in row and last < args.limit / 16:
            save(f'{tokens}', measure(backbone, tokens, args))
        last = row.get(f'{tokens}', {}).get('step', torch.inf)
    for seed in args.seeds if args.data else ():
        if f'seed {seed}' not in row:
            save(f'seed {seed}', train(name, seed, args))


def write_page(found: dict[str, dict], args: argparse.Namespace) -> None:
    """Write the tables and the picture of the page from the rows' files."""
    names = {name: ROWS[name].row for name in found}
    sizes = ' / '.join(f'{tokens // 1024}k' for tokens in args.tokens)
    text = ['| attention | result for a query q | operations', '|---' * 3]
    text += [f'| {names[name]} | {ROWS[name].note}' for name in found]
    is_trained = any(map(scores_of, found.values()))
    num_columns = 8 if is_trained else 6
    titles = ('attention', 'GMAC', 'GiB forward / step',
              f'ms forward {sizes}', f'ms step {sizes}', 'error', 'accuracy',
              'over softmax')[:num_columns]
    text += ['', f'| {" | ".join(titles)}', '|---' * num_columns]
    figure = Figure((7, 4.5), layout='constrained')
    axes = figure.subplots()
    for name, row in found.items():
        scores, shown = scores_of(row), row.get(str(SHOWN), {})
        base = scores_of(found.get(
            'causal_softmax' if 'causal' in name else 'softmax', {}))
        seeds, accuracy, over = scores.keys() & base.keys(), '-', '-'
        if scores:
            mean = statistics.fmean(scores.values())
            accuracy = f'{mean:.1f} ± {statistics.pstdev(scores.values()):.1f}'
        if scores and shown:
            axes.plot(1000 * shown['step'], mean, 'o^'['causal' in name])
            axes.annotate(names[name], (1000 * shown['step'], mean), (4, 4),
                          textcoords='offset points', fontsize=8)
        if 'softmax' not in name and seeds:
            verdict = decide([scores[seed] - base[seed] for seed in seeds])
            over = f'{verdict.mean:+.1f} ± {verdict.half:.1f}'
        gib = ' / '.join(f'{shown[f"{task} GiB"]:.2f}' if shown else '-'
                         for task in ('forward', 'step'))
        times = (' / '.join(
            milliseconds(row[str(n)][task]) if str(n) in row else '-'
            for n in args.tokens) for task in ('forward', 'step'))
        cells = (names[name], f'{row["macs"] / 1e9:.2f}', gib, *times,
                 f'{row["error"]:.0e}', accuracy, over)[:num_columns]
        text.append(f'| {" | ".join(cells)}')
    text += ['', 'Machine: ' + ' or '.join(
        {row['machine'] for row in found.values()}), '',
             f'{ACCURACY}\n\n![Accuracy against time]({PICTURE})'
             if is_trained else 'Accuracies are not measured yet.', '']
    before, rest = args.page.read_text('utf-8').split(START)
    args.page.write_text('\n'.join([before + START, '', *(
        f'{line} |' if line.startswith('|') else line for line in text)])
        + END + rest.split(END)[1], 'utf-8')
    if not is_trained:
        return
    axes.set(xscale='log', ylabel='accuracy on the motion set, %',
             xlabel=f'training step of {SHOWN // 1024}k tokens, ms')
    figure.savefig(args.page.with_name(PICTURE), metadata=dict(Date=None))


def milliseconds(seconds: float) -> str:
    return f'{1000 * seconds:{",.0f" if seconds > .1 else ".3g"}}'


def scores_of(row: dict) -> dict[str, float]:
    return {key: value for key, value in row.items() if 'seed' in key}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter)
    add = parser.add_argument
    add('out', type=Path, help='folder for a JSON file of each row')
    add('--rows', nargs='*', choices=ROWS, default=list(ROWS))
    add('--data', type=Path, help='the motion set; without it, no training')
    add('--seeds', nargs='*', type=int, default=range(5))
    add('--tokens', nargs='*', type=int, default=[1024, 4096, 16384, 65536])
    add('--repeats', type=int, default=5)
    add('--limit', type=float, default=60, metavar='SECONDS')
    add('--device', default='cuda' if torch.cuda.is_available() else 'cpu')
    add('--dtype', choices=common.DTYPES, default='float32')
    add('--compile', action='store_true')
    add('--page', type=Path, default=PAGE)
    add('--row', help=argparse.SUPPRESS)
    args = parser.parse_args()
    args.out.mkdir(parents=True, exist_ok=True)
    if args.row:
        measure_row(args.row, args)
        return
    for name in args.rows:
        subprocess.run([sys.executable, __file__, *sys.argv[1:], '--row',
                        name], check=True)
    files = {name: args.out / f'{name}.json' for name in ROWS}
    write_page({name: json.loads(file.read_text())
                for name, file in files.items() if file.exists()}, args)


if __name__ == '__main__':
    main()
