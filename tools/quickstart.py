# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Make videos, then train, test and run a small model, in one process.

    bash tools/quickstart.sh

quickstart.sh prepares the environment and starts this program. A second run
continues from the files of the first one.
"""
import argparse
import math
import os
import shlex
import sys
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any, TextIO

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from tools.data.motion.make_motion import make_motion

CONFIG = 'configs/linear_ff_tiny_motion.py'
# Least accuracy in the test, in percent.
ENOUGH = 90
# Seconds left that are long for a first try.
LONG = 900
# Batches of the accuracy so far.
WINDOW = 100
# Changes to the config that reach this accuracy in a third of the time: small
# batches of clips and their reversals.
RECIPE = {
    'model.data_preprocessor.blending.type': 'AppendReversedClips',
    # Each pair of classes is a motion and its reversal.
    'model.data_preprocessor.blending.opposites': [1, 0, 3, 2, 5, 4, 7, 6],
    'model.cls_head.dropout_ratio': 0.,
    'train_dataloader.batch_size': 4,
    'optim_wrapper.optimizer.lr': 2e-3,
    'optim_wrapper.optimizer.betas': (0.9, 0.98),
    'param_scheduler.0.end': 100,
    'param_scheduler.1.T_max': 3,
    'param_scheduler.1.end': 3,
    'train_cfg.max_epochs': 3,
    'train_cfg.val_interval': 3,
}


def parse_args() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.split('\n')[0])
    parser.add_argument(
        '--short', action='store_true',
        help='run every stage on a few videos, which teaches the model little')
    parser.add_argument(
        '--seed', type=int, default=0,
        help='seed of the training (default: 0)')
    return parser.parse_args()


class Progress:
    """Progress of a stage: a bar in a terminal, a line per tenth elsewhere.

    Args:
        total: Number of steps.
        stream: Where to write. Defaults to standard output.
        clock: Seconds since any fixed time.
    """

    def __init__(self, total: int, stream: TextIO | None = None,
                 clock: Callable[[], float] = time.monotonic) -> None:
        self.total = total
        self.stream = stream or sys.stdout
        self.clock = clock
        self.done = self.first = self._tenth = 0
        self.began = self._drawn = clock()

    def start(self, done: int) -> None:
        """Start to count time, with so many steps done by an earlier run."""
        self.done = self.first = done
        self.began = self.clock()
        self._tenth = 10 * done // self.total
        if done:
            self.stream.write(
                f'    continues at {100 * done // self.total} %\n')

    def update(self, done: int, note: str = '') -> None:
        """Show the number of finished steps, and a note (an accuracy)."""
        self.done = done
        now, is_last = self.clock(), done >= self.total
        if self.stream.isatty():
            if now - self._drawn < 0.2 and not is_last:
                return
            self._drawn = now
            full = 24 * done // self.total
            bar = '#' * full + '.' * (24 - full)
            text = f'\r    [{bar}] {self._describe(now, note)}'
            self.stream.write(f'{text:79}' + '\n' * is_last)
        else:
            tenth = 10 * done // self.total
            if tenth == self._tenth:
                return
            self._tenth = tenth
            self.stream.write(f'    {self._describe(now, note)}\n')
        self.stream.flush()

    def _describe(self, now: float, note: str) -> str:
        share = 100 * self.done // self.total
        new = self.done - self.first
        left = (now - self.began) / max(1, new) * (self.total - self.done)
        return ', '.join(filter(None, (
            f'{share:3} %', note, f'{math.ceil(left)} s left'
            + ' (--short takes a minute)' * (left > LONG))))


@contextmanager
def stage(name: str) -> Iterator[None]:
    """Print the name of a stage, and how long it took."""
    print(f'==> {name}', flush=True)
    began = time.monotonic()
    yield
    print(f'==> {name}: {time.monotonic() - began:.0f} s', flush=True)


def progress_hook(progress: Progress) -> Any:
    """Build a hook that shows the progress of a training or a test."""
    from mmengine.hooks import Hook

    class ProgressHook(Hook):
        priority = 'LOWEST'

        def __init__(self) -> None:
            self.recent = deque(maxlen=WINDOW)
            self.validated = ''

        def before_train(self, runner: Any) -> None:
            progress.total = runner.max_iters
            progress.start(runner.iter)

        def after_train_iter(self, runner: Any, batch_idx: int,
                             data_batch: Any = None,
                             outputs: Any = None) -> None:
            self.recent.append(float(outputs['top1_acc']))
            mean = sum(self.recent) / len(self.recent)
            progress.update(
                runner.iter + 1,
                f'{100 * mean:.0f} % of training clips right'
                f'{self.validated}')

        def after_val_epoch(self, runner: Any, metrics: Any = None) -> None:
            self.validated = f' ({100 * metrics["acc/top1"]:.0f} % validated)'

        def before_test(self, runner: Any) -> None:
            progress.total = len(runner.test_dataloader)
            progress.start(0)

        def after_test_iter(self, runner: Any, batch_idx: int,
                            data_batch: Any = None,
                            outputs: Any = None) -> None:
            progress.update(batch_idx + 1)

    return ProgressHook()


class Quickstart:
    """Stages of the quickstart, which run in one process.

    Args:
        work: Folder of the results.
        data: Folder of the videos.
        num_videos: Number of training and validation videos.
        changes: Changes to the config.
    """

    def __init__(self, work: Path, data: Path, num_videos: tuple[int, int],
                 changes: dict[str, Any]) -> None:
        self.work = work
        self.data = data
        self.num_videos = num_videos
        self.changes = changes
        self.log = work / 'quickstart.log'

    def make_videos(self) -> None:
        is_new = make_motion(self.data, *self.num_videos, seed=0)
        print(f'    {sum(self.num_videos)} videos in {self.data}'
              + ('' if is_new else ', from an earlier run'))

    @contextmanager
    def _quiet(self) -> Iterator[TextIO]:
        """Send all output to the log; yield the original standard output."""
        out = sys.stdout
        with (self.log.open('a') as file, redirect_stdout(file),
              redirect_stderr(file)):
            yield out

    def _build(self, work: Path, **fields: Any) -> Any:
        """Build the runner of a training or of a test."""
        from mmvidattn.apis import load_config
        from mmvidattn.apis.build_runner import build_runner

        cfg = load_config(CONFIG, dict(self.changes, **fields))
        cfg.work_dir = str(work)
        return build_runner(cfg, strict=cfg.load_from is not None)

    def train(self) -> Path:
        """Train, or continue an earlier run; return the best checkpoint."""
        with self._quiet() as out:
            runner = self._build(self.work, resume=True)
            progress = Progress(1, out)
            runner.register_hook(progress_hook(progress))
            runner.train()
        if progress.first == progress.total:
            print('    complete, from an earlier run')
        return max(self.work.glob('best_*.pth'),
                   key=lambda path: path.stat().st_mtime)

    def test(self, checkpoint: Path) -> float:
        """Return the accuracy in percent."""
        with self._quiet() as out:
            runner = self._build(
                self.work / 'test', load_from=str(checkpoint))
            runner.register_hook(progress_hook(Progress(1, out)))
            return 100 * runner.test()['acc/top1']

    def predict(self, checkpoint: Path) -> list[Path]:
        """Classify a video; return the files that show the prediction."""
        from mmengine.device import get_device

        from mmvidattn import VideoClassifier
        from mmvidattn.visualization import annotate_video

        video = self.data / 'val/000000.mp4'
        with self._quiet():
            classifier = VideoClassifier(CONFIG, checkpoint, get_device())
            lines = [f'{found.score:6.3f}  {found.label}'
                     for found in classifier(video).predictions]
            outputs = [self.work / f'prediction.{suffix}'
                       for suffix in ('png', 'mp4')]
            for path in outputs:
                annotate_video(video, path, lines)
        print(f'    {video}: {lines[0].strip()}')
        return outputs


def main() -> None:
    args = parse_args()
    os.chdir(Path(__file__).resolve().parents[1])
    name = 'quickstart_short' if args.short else 'quickstart'
    work = Path('work_dirs', name)
    data = work / 'motion' if args.short else Path('data/motion')
    changes = RECIPE | {
        'data_root': str(data), 'randomness.seed': args.seed}
    if args.short:
        changes |= {'train_cfg.max_epochs': 1, 'train_cfg.val_interval': 1}
    work.mkdir(parents=True, exist_ok=True)
    run = Quickstart(
        work, data, (32, 16) if args.short else (2000, 200), changes)
    with stage('Videos'):
        run.make_videos()
    with stage('Training'):
        checkpoint = run.train()
    with stage('Testing, 2 clips x 3 crops'):
        top1 = run.test(checkpoint)
    with stage('Prediction'):
        picture, video = run.predict(checkpoint)
    print(f'==> top-1 {top1:.1f} % on the validation videos')
    if top1 < (0 if args.short else ENOUGH):
        raise SystemExit(f'ERROR: expected at least {ENOUGH} %, see {run.log}')
    model, weights = f' {CONFIG} {checkpoint}', checkpoint
    if args.short:
        print('This was a trial of all steps: the model has learned nothing. '
              'The commands below use the one that comes with the package.')
        model, weights = '', 'default'
    program = shlex.quote(os.path.relpath(
        Path(sys.executable).with_name('mmvidattn')))
    print(f'''
Look at the prediction:  {picture}, {video}
Classify your own video: {program} predict VIDEO{model}
Train on your own videos (a folder per class):
    {program} finetune FOLDER --model linear_ff_tiny_motion \
--weights {weights}
What each stage did: {run.log}''')


if __name__ == '__main__':
    from mmvidattn.utils.exits import one_line_stop
    with one_line_stop('; the same command continues'):
        main()
