# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Processes that run in turns, checks of their results, and reports.

Each variant of a computation runs in a process of its own, which first writes
its results. Times are measured only if the results of all variants agree.
"""
import argparse
import ctypes
import json
import os
import platform
import re
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

ROOT = Path(__file__).resolve().parents[2]
DTYPES = dict(float32=torch.float32, bfloat16=torch.bfloat16)
# Import mmvidattn from a checkout, then run the program of this checkout.
START = '''
import runpy, sys
del sys.argv[0]
sys.path[0] = sys.argv.pop(0)
import mmvidattn
runpy.run_path(sys.argv[0], run_name='__main__')
'''

# A function to measure, and the results that are compared.
Prepared = tuple[Callable[[], object], dict[str, Tensor]]


def machine(device: str) -> str:
    """Describe a device and the versions of Python and torch in a line."""
    if torch.device(device).type == 'cuda':
        name = torch.cuda.get_device_name(device)
        name += f', CUDA {torch.version.cuda}'
    else:
        info = Path('/proc/cpuinfo')
        model = re.search(
            'model name.*: (.+)', info.read_text() if info.exists() else '')
        name = f'{torch.get_num_threads()} of {os.cpu_count()} cores of ' + (
            model[1] if model else platform.processor())
    return (f'{name}, Python {platform.python_version()}, torch '
            f'{torch.__version__}')


def synchronize(device: str) -> None:
    if torch.device(device).type == 'cuda':
        torch.cuda.synchronize()


def relative(a: Tensor, b: Tensor) -> float:
    """Return the norm of the difference, relative to the norm of ``b``."""
    a, b = a.double(), b.double()
    return ((a - b).norm() / b.norm()).item()


def require_agreement(differences: dict[str, float],
                      tolerances: dict[str, float]) -> None:
    """Exit unless there are differences, and none exceeds its tolerance.

    The keys are 'VARIANT: RESULT' and 'RESULT'.
    """
    large = {
        name: value for name, value in differences.items()
        # NaN is an error, too.
        if not value <= tolerances[name.rpartition(': ')[2]]}
    if large or not differences:
        raise SystemExit('no times: results differ by more than their '
                         f'tolerance: {large or "nothing was compared"}')


class Worker:
    """Process of a program that prepares a variant, and runs it when called.
    """

    def __init__(self, program: str, checkout: Path, arguments: dict,
                 out: Path) -> None:
        self.arguments = arguments
        task = json.dumps(dict(arguments=arguments, out=str(out)))
        self.process = subprocess.Popen(
            [sys.executable, '-c', START, checkout, program, '--worker', task],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
            # Measure bfloat16 also where float32 is faster.
            env=dict(os.environ, MMVIDATTN_BFLOAT16='force'))
        self.read()

    def read(self) -> dict[str, float]:
        for line in self.process.stdout:
            if line.startswith('measured '):
                return json.loads(line.removeprefix('measured '))
        raise SystemExit(f'no times: {self.arguments} failed')

    def __call__(self) -> dict[str, float]:
        self.process.stdin.write('go\n')
        self.process.stdin.flush()
        return self.read()

    def close(self) -> None:
        self.process.stdin.close()
        self.process.wait()


def serve(task: str, prepare: Callable[..., Prepared]) -> None:
    """Write the results of a variant, then measure it once per line of input.
    """
    # Standard output is reserved for times; models print to standard error.
    out, sys.stdout = sys.stdout, sys.stderr
    task = json.loads(task)
    device = task['arguments']['device']
    on_gpu = torch.device(device).type == 'cuda'
    function, results = prepare(**task['arguments'])
    torch.save({name: x.detach().cpu() for name, x in results.items()},
               task['out'])
    results.clear()
    if on_gpu:
        torch.cuda.reset_peak_memory_stats()
    else:
        forget_peak()
    before = resident()
    function()
    start = 0.

    def report(seconds: float) -> None:
        gib = torch.cuda.max_memory_allocated() / 2**30 if on_gpu else (
            resident('VmHWM') - before) / 2**30
        print('measured', json.dumps(dict(seconds=seconds, peak_gib=gib)),
              file=out, flush=True)

    report(0.)
    for _ in sys.stdin:
        # Warm up memory and caches after the other variants' turns.
        function()
        synchronize(device)
        start = time.perf_counter()
        function()
        synchronize(device)
        report(time.perf_counter() - start)


def forget_peak() -> None:
    """Return freed memory to the system, and reset the peak, on Linux."""
    if sys.platform == 'linux':
        ctypes.CDLL(None).malloc_trim(0)
        Path('/proc/self/clear_refs').write_text('5')


def resident(kind: str = 'VmRSS') -> int:
    """Return the memory of this process in bytes, 0 where it is unknown."""
    status = Path('/proc/self/status')
    found = status.exists() and re.search(
        rf'{kind}:\s+(\d+) kB', status.read_text())
    return int(found[1]) * 1024 if found else 0


def compare(program: str, variants: dict[str, dict], args: argparse.Namespace,
            tolerances: dict[str, float]) -> dict[str, Any]:
    """Measure variants in turns, after a check of their results.

    Args:
        program: Benchmark program.
        variants: Arguments of its ``prepare`` by variant. 'before' runs in
            the checkout ``args.against``. All get the device, and the name of
            a file for common weights.
        args: Options of the program.
        tolerances: Largest relative difference from the first variant that
            has the result, by result.
    """
    with tempfile.TemporaryDirectory() as folder:
        workers = {
            name: Worker(
                program,
                args.against.resolve() if name == 'before' else ROOT,
                dict(arguments, device=args.device,
                     weights=f'{folder}/weights.pt'), f'{folder}/{i}.pt')
            for i, (name, arguments) in enumerate(variants.items())}
        first, differences = {}, {}
        for i, name in enumerate(workers):
            for key, x in torch.load(
                    f'{folder}/{i}.pt', weights_only=True).items():
                if key in first:
                    differences[f'{name}: {key}'] = relative(x, first[key])
                else:
                    first[key] = x
        if first and len(workers) > 1:
            require_agreement(differences, tolerances)
        times = {name: [] for name in workers}
        for _ in range(args.repeats):
            for name, worker in workers.items():
                times[name].append(worker())
        for worker in workers.values():
            worker.close()
    seconds = {name: statistics.median(x['seconds'] for x in measured)
               for name, measured in times.items()}
    base = next(iter(seconds.values()))
    return dict(differences=differences, rows={
        name: dict(seconds=s, ratio=s / base,
                   peak_gib=times[name][-1]['peak_gib'])
        for name, s in seconds.items()})


def run(program: str, doc: str, prepare: Callable[..., Prepared],
        add_arguments: Callable[[argparse.ArgumentParser], None],
        benchmarks: Callable[[argparse.Namespace], Any]) -> None:
    """Run a benchmark program, or one of its workers.

    ``benchmarks`` yields a title, variants and tolerances for each table, and
    ``prepare`` receives the arguments of a variant.
    """
    if sys.argv[1:2] == ['--worker']:
        serve(sys.argv[2], prepare)
        return
    parser = argparse.ArgumentParser(
        description=doc, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        '--repeats', type=int, default=7,
        help='runs of which the median is taken (default: %(default)s)')
    parser.add_argument(
        '--device', default='cuda' if torch.cuda.is_available() else 'cpu')
    parser.add_argument(
        '--json', type=Path, help='write the results to this file')
    parser.add_argument(
        '--against', type=Path, metavar='CHECKOUT',
        help='measure another checkout of this repository in the same turns')
    add_arguments(parser)
    args = parser.parse_args()
    print(f'{machine(args.device)}; medians of {args.repeats} runs in turns')
    result = dict(machine=machine(args.device), command=sys.argv[1:],
                  repeats=args.repeats, tables={})
    for title, variants, tolerances in benchmarks(args):
        table = compare(program, variants, args, tolerances)
        worst = max(table['differences'].values(), default=0.)
        print(f'\n{title} (results differ by at most {worst:.1e})')
        for name, row in table['rows'].items():
            print(f'  {name:28}{row["seconds"]:10.4f} s{row["ratio"]:8.2f} x'
                  f'{row["peak_gib"]:9.2f} GiB', flush=True)
        result['tables'][title] = table
        if args.json:
            args.json.write_text(json.dumps(result, indent=1) + '\n')
