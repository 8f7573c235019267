# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Compute what no change may alter, by public names only.

    python tests/goldens/behavior.py            # name what differs
    python tests/goldens/behavior.py configs    # store a kind anew

``behavior.json`` has the results of the last accepted state. Results of a
second checkout are computed with its ``PYTHONPATH``. Write a kind anew only
if it is meant to change, and say why in the commit.
"""
import hashlib
import json
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import mmvidattn  # noqa: F401, I001  isort: skip

import av
import numpy as np
import torch
from mmaction.registry import MODELS
from mmengine.registry import init_default_scope

from mmvidattn.apis import load_config

PACKAGE = Path(mmvidattn.__file__).parent
FILE = Path(__file__).with_suffix('.json')
# What a run is made of, by the ends of a config's keys. A config may have
# other variables and resolve to the same run.
PARTS = dict(
    model=('model', ),
    data=('_dataloader', '_evaluator', '_pipeline'),
    schedule=('optim_wrapper', 'param_scheduler', 'auto_scale_lr', '_cfg',
              'randomness', 'load_from'),
    runtime=('_hooks', 'runner_type', 'online'))
FAMILIES = ('linear_ff_tiny_motion', 'xvit_tiny_motion', 'vivit_tiny_motion',
            'laps_tiny_motion', 'dualformer_tiny_motion')


def fill(model: torch.nn.Module) -> torch.nn.Module:
    """Draw weights in the order of the state dict."""
    generator = torch.Generator().manual_seed(0)
    for name, x in model.state_dict().items():
        if name.endswith('running_var'):
            x.fill_(1)
        elif x.is_floating_point():
            x.normal_(std=x[0].numel()**-0.5 if x.dim() > 1 else 0.3,
                      generator=generator)
            x += x.dim() == 1 and name.endswith('weight')
    return model.eval()


def build(name: str) -> torch.nn.Module:
    cfg = load_config(name)
    init_default_scope('mmaction')
    return fill(MODELS.build(cfg.model))


def save(model: torch.nn.Module, path: Path, num_classes: int) -> Path:
    classes = [f'class {i}' for i in range(num_classes)]
    torch.save(dict(state_dict=model.state_dict(),
                    meta=dict(dataset_meta=dict(classes=classes))), path)
    return path


def draw(*shape: int, seed: int = 0) -> torch.Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed))


def write_video(path: Path, frames: int, side: int = 64) -> Path:
    """Write a textured square that moves left, then right, at 25 Hz."""
    noise = np.random.default_rng(0).integers(0, 90, (side, side, 3), np.uint8)
    with av.open(str(path), 'w') as container:
        stream = container.add_stream('libx264', rate=25)
        stream.width = stream.height = side
        stream.pix_fmt = 'yuv420p'
        stream.options = dict(qp='4')
        for i in range(frames):
            image = noise.copy()
            x = abs(frames // 2 - i) * (side - 20) // frames
            image[20:40, x:x + 20] += 120
            container.mux(stream.encode(
                av.VideoFrame.from_ndarray(image, format='rgb24')))
        container.mux(stream.encode(None))
    return path


def run(*arguments: Any) -> None:
    """Run a command in this process."""
    from mmvidattn.commands import main
    main([*map(str, arguments)])


def read_lines(path: Path) -> list[dict]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def configs(folder: Path) -> dict[str, Any]:
    """Hash the parts of each config that reach the runner."""
    results = {}
    for name in mmvidattn.list_models(ablations=True):
        cfg = load_config(name).to_dict()
        results[name] = {}
        for part, ends in PARTS.items():
            text = json.dumps(
                {key: cfg[key] for key in sorted(cfg) if key.endswith(ends)},
                sort_keys=True, default=str).replace(str(PACKAGE.parent), '')
            results[name][part] = hashlib.sha256(text.encode()).hexdigest()[:8]
    return results


def logits(folder: Path) -> dict[str, Any]:
    """Logits of a model of each family for a drawn clip."""
    clips = draw(1, 1, 3, 8, 64, 64)
    results = {}
    with torch.no_grad():
        for name in FAMILIES:
            results[name] = build(name)(
                clips, mode='tensor', stage='head')[0].tolist()
        model = mmvidattn.get_model('linear_ff_tiny_motion', 'default')
        results['default'] = model(
            clips, mode='tensor', stage='head')[0].tolist()
    return results


def views(folder: Path) -> dict[str, Any]:
    """Scores of a test with several clips and crops."""
    path = write_video(folder / 'video.mp4', 60)
    model = mmvidattn.VideoClassifier('linear_ff_tiny_motion', 'default')
    steps = model.model.cfg.test_pipeline
    (folder / 'views.py').write_text(
        "_base_ = 'mmvidattn::linear_ff_tiny_motion.py'\n"
        'test_pipeline = ' + repr([
            {**step, **(dict(num_clips=4) if step.get('test_mode') else {})}
            for step in steps]) + '\n')
    weights = PACKAGE / 'weights/linear_ff_tiny_motion/model.safetensors'
    classifier = mmvidattn.VideoClassifier(
        str(folder / 'views.py'), str(weights))
    write_video(folder / 'other.mp4', 40)
    (folder / 'list.txt').write_text('video.mp4 3\nother.mp4 4\n')
    run('test', folder / 'views.py', weights, '--work-dir', folder / 'test',
        '--cfg-options', f'data_root={folder}',
        'test_dataloader.dataset.ann_file=list.txt',
        f'test_dataloader.dataset.data_prefix.video={folder}',
        'test_dataloader.num_workers=0',
        'test_dataloader.persistent_workers=False')
    metrics = sorted((folder / 'test').glob('*/*.json'))[-1]
    return dict(
        views=[p.score for p in sorted(classifier(str(path)).predictions,
                                       key=lambda p: p.index)],
        metrics={key: value for key, value in json.loads(
            metrics.read_text()).items() if key.startswith('acc')})


def features(folder: Path) -> dict[str, Any]:
    """Scores and events of a stream of features, by both kernels."""
    from mmvidattn.live import EventDetector
    from mmvidattn.online import StreamSession
    model = build('testra_tiny_synthetic')
    stream = dict(rgb=draw(60, 32), flow=draw(60, 16, seed=1))
    results = {}
    for kernel in 'window', 'smoothing':
        session = StreamSession(model, 4, kernel=kernel)
        outputs = [session.push({k: x[t:t + 1] for k, x in stream.items()})
                   for t in range(60)]
        logits = torch.cat([y['action'] for y in outputs])
        results[kernel] = logits[::9].tolist()
    scores = logits[:, 0].softmax(-1).numpy()
    detector = EventDetector([f'class {i}' for i in range(scores.shape[1])],
                             on=0.2, off=0.1, min_duration=0.5)
    results['events'] = [
        event for t, score in enumerate(scores)
        for event in detector.update(t / 4, (t + 1) / 4, score)]
    results['events'] += detector.finish(15.)
    return results


def stream(folder: Path) -> dict[str, Any]:
    """Scores and events of pixels and of a clip model, by the command."""
    video = write_video(folder / 'long.mp4', 150)
    small = write_video(folder / 'small.mp4', 150, 32)
    causal = save(build('linear_ff_causal_tiny_synthetic'),
                  folder / 'causal.pth', 9)
    results = {}
    for name, arguments in dict(
            clips=[video, '--on', 0.4, '--off', 0.2],
            pixels=[small, 'linear_ff_causal_tiny_synthetic', causal,
                    '--on', 0.2, '--off', 0.1]).items():
        events, scores = folder / f'{name}.jsonl', folder / name
        run('stream', *arguments, '--events', events, '--scores', scores,
            '--min-duration', 0.1, '--device', 'cpu')
        from mmvidattn.online.frame_scores import read_frame_scores
        (rate, table), = read_frame_scores(scores).videos.values()
        results[name] = dict(
            rate=rate, scores=table[::7].tolist(),
            events=[{key: value for key, value in line.items()
                     if key not in ('source', 'time')}
                    for line in read_lines(events)])
    return results


def finetune(folder: Path) -> dict[str, Any]:
    """The report of two epochs on six videos of two classes."""
    for label, frames in ('short', 24), ('long', 48):
        (folder / 'videos' / label).mkdir(parents=True)
        for i in range(4):
            write_video(folder / f'videos/{label}/{i}.mp4', frames + 4 * i)
    run('finetune', folder / 'videos', '--work-dir', folder / 'out',
        '--epochs', 2, '--workers', 0, '--seed', 0, '--batch-size', 2,
        '--model', 'linear_ff_tiny_motion', '--weights', 'default')
    metrics = json.loads((folder / 'out/metrics.json').read_text('utf-8'))
    losses = [line['loss'] for path in sorted(
        (folder / 'out/run').glob('*/vis_data/scalars.json'))
        # Means of up to 20 steps.
        for line in read_lines(path) if 'loss' in line and
        line['step'] in (20, 21, 41, 42)]
    return dict(losses=losses, top1=metrics['top1'],
                classes=metrics['classes'])


def export(folder: Path) -> dict[str, Any]:
    """Outputs of a file of each format."""
    from mmvidattn.export import load_program
    clips = draw(2, 3, 8, 64, 64)
    results = {}
    for suffix in 'pt2', 'onnx':
        path = folder / f'model.{suffix}'
        run('export', path, '--output', 'probabilities')
        output, = load_program(path)(clips)
        results[suffix] = output.detach().tolist()
    return results


KINDS: dict[str, Callable[[Path], dict[str, Any]]] = dict(
    configs=configs, logits=logits, views=views, features=features,
    stream=stream, finetune=finetune, export=export)


def compute(kind: str) -> dict[str, Any]:
    """Compute a kind of results, as read from JSON."""
    with tempfile.TemporaryDirectory() as folder:
        return json.loads(json.dumps(KINDS[kind](Path(folder))))


def differences(got: Any, expected: Any, name: str = '') -> list[str]:
    """Name each place where results differ.

    Numbers may differ by 1e-4, which another processor causes.
    """
    if isinstance(expected, (dict, list)) and type(got) is type(expected):
        if isinstance(expected, list):
            got, expected = (dict(enumerate(x)) for x in (got, expected))
        if got.keys() != expected.keys():
            keys = sorted(map(str, got.keys() ^ expected.keys()))
            return [f'{name}: only one has {", ".join(keys)}']
        return [line for key, value in expected.items()
                for line in differences(got[key], value, f'{name}.{key}')]
    if isinstance(expected, float) and isinstance(got, (int, float)):
        same = abs(got - expected) <= 1e-4 * (1 + abs(expected))
    else:
        same = got == expected
    return [] if same else [f'{name}: {got!r}, expected {expected!r}']


def main(*kinds: str) -> None:
    stored = json.loads(FILE.read_text())
    for kind in kinds:
        stored[kind] = compute(kind)
    if kinds:
        # A line for each entry, to read changes in a diff.
        FILE.write_text('{\n' + ',\n'.join(
            f'"{kind}": {{\n' + ',\n'.join(
                f'"{key}": {json.dumps(value, sort_keys=True)}'
                for key, value in sorted(stored[kind].items())) + '\n}'
            for kind in sorted(stored)) + '\n}\n')
    else:
        lines = [line for kind in KINDS
                 for line in differences(compute(kind), stored[kind], kind)]
        sys.exit('\n'.join(lines) or None)


if __name__ == '__main__':
    main(*sys.argv[1:])
