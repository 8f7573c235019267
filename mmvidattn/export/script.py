# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Write a script that classifies videos with an exported file.

The script needs only the runtime of the file, numpy and cv2, but not this
package. It is written only if it chooses the same frames as the config's test
pipeline, and its clips are bit-equal.
"""
from pathlib import Path
from typing import Any

import numpy as np
import torch
from mmengine.dataset import pseudo_collate

from ..apis.video_clips import ClipPipeline, whole_clip
from .formats import METADATA, choose_format
from .programs import ClipProgram, frame_steps

# Code that sets `frames` [clips, T] for a video of n frames.
SAMPLERS = dict(
    UniformSample='''\
    size = (n - 1) / {T}
    frames = [[round(size * i) + int(size / {parts} * (k + 1))
               for i in range({T})] for k in range({K})]''',
    SegmentSampleFrames='''\
    bounds = np.round(np.arange({T} + 1) * ((n - 1) / {T}))
    starts, ends = bounds[:-1], bounds[1:]
    frames = [(starts + ends) // 2, starts, ends][:{K}]''',
    SampleFrames='''\
    room = max(n - ({T} - 1) * {r} - 1, 0)
    starts = np.round(np.arange({K}) * (room / {gaps}))
    starts = starts if {K} > 1 else np.array([room // 2])
    frames = (starts[:, None] + {within}) % n''',
    CenteredSampleFrames='''\
    room = max(n - {T} * {r} + 1, 0)
    starts = (np.arange({K}) + 0.5) * room / {K}
    frames = (starts.astype(int)[:, None] + {within}) % n''',
    ScenicSampleFrames='''\
    room = max(n - {T} * {r}, 0)
    starts = np.linspace(0, room, {K}) if {K} > 1 else (
        np.array([room // 2]))
    frames = (starts.astype(int)[:, None] + {within}) % n''',
    SpreadSampleFrames='''\
    room = max(n - {T} * {r}, 0)
    starts = np.ceil(np.arange({K}) * room / {K})
    frames = (starts[:, None] + {spread}) % n''',
    SlowFastSampleFrames='''\
    span = max({T} * {r} * {scale}, 1)
    starts = max(n - span, 0) * np.arange({K}) / {K}
    frames = starts[:, None] + np.linspace(0, span - 1, {T})
    frames = frames.clip(0, n - 1)''')
# Code that sets `corners` (left, top) for frames of h x w.
CROPS = dict(
    CenterCrop='''\
    corners = [((w - {w}) // 2, (h - {h}) // 2)]''',
    ThreeCrop='''\
    x, y = (w - {w}) // 2, (h - {h}) // 2
    corners = [(0, 0), (2 * x, 2 * y), (x, y)]''',
    UniformThreeCrop='''\
    x, y = (w - {w}) // 2, (h - {h}) // 2
    corners = [(0, y), (x, y), (w - {w}, y)] if w >= h else [
        (x, 0), (x, y), (x, h - {h})]''')
# Expressions for the probabilities of a video, by `average_clips` and output.
AVERAGES = dict(
    prob=dict(logits='softmax(y).mean(0)', probabilities='y.mean(0)'),
    # A softmax does not depend on a constant that is added to all logits.
    score=dict(logits='softmax(y.mean(0))',
               probabilities='softmax(np.log(y).mean(0))'))
# For each format: module, code that loads the model and its labels, and code
# that calls the model with clips.
RUNTIMES = dict(
    onnx=('onnxruntime', '''\
    model = onnxruntime.InferenceSession(file)
    metadata = model.get_modelmeta().custom_metadata_map
    labels = json.loads(metadata['classes'])''',
          'model.run(None, dict(clips=clips))[0]'),
    pt2=('torch', f'''\
    files = {{'{METADATA.format('classes')}': ''}}
    model = torch.export.load(file, extra_files=files).module()
    labels = json.loads(files['{METADATA.format('classes')}'])''',
         "model(torch.tensor(clips, device='{device}'))[0].detach().cpu()"
         '.numpy()'))
SCRIPT = '''\
"""Classify videos with {file}: python {name} VIDEO [VIDEO ...]"""
import json, pathlib, sys
import cv2, numpy as np, {runtime}

def choose_frames(n, fps):
{sampler}
    return np.ravel(frames).astype(int)

def make_clips(frames):
{resize}
    h, w = frames[0].shape[:2]
{crop}
    x = np.stack([frame[top:top + {height}, left:left + {width}]
                  for left, top in corners for frame in frames])
    x = x.reshape(-1, {T}, {height}, {width}, 3).transpose(0, 4, 1, 2, 3)
    return np.ascontiguousarray({values})

def read_frames(path):
    video, n = cv2.VideoCapture(path), 0
    while video.grab():
        n += 1
    assert n, f'cannot read {{path}}'
    chosen = choose_frames(n, video.get(cv2.CAP_PROP_FPS))
    video = cv2.VideoCapture(path)
    found = {{i: video.retrieve()[1] for i in range(chosen.max() + 1)
             if video.grab() and i in chosen}}
    return [found[i] for i in chosen]

def softmax(x):
    x = np.exp(x - x.max(-1, keepdims=True))
    return x / x.sum(-1, keepdims=True)

if __name__ == '__main__':
    file = str(pathlib.Path(__file__).with_name({file!r}))
{load}
    for path in sys.argv[1:]:
        clips = make_clips(read_frames(path))
        y = {call}
        p = {average}
        for i in p.argsort()[::-1][:5]:
            label = labels[i] if labels else f'class {{i}}'
            print(path, f'{{p[i]:.5f}}', label)
'''


def make_script(program: ClipProgram, file: Path) -> tuple[Path, str]:
    """Write the text of a script that classifies videos with an exported file.

    Args:
        program: Program in the file.
        file: Path of the file. The script belongs beside it.

    Returns:
        Path and text of the script.

    Raises:
        ValueError: If the script cannot repeat the config's test pipeline.
    """
    if not isinstance(program, ClipProgram):
        raise ValueError('it is only for clip models, got a '
                         f'{type(program).__name__}')
    model, format = program.model, choose_format(file)
    head = model.cls_head
    average = getattr(head, 'average_clips', None)
    if average not in AVERAGES or getattr(head, 'multi_class', False) or (
            getattr(head, 'splits', None)):
        raise ValueError(f'{type(head).__name__} does not average one softmax '
                         f'over views (average_clips={average!r})')
    parts = _steps(frame_steps(model.cfg))
    runtime, load, call = RUNTIMES[format]
    path = file.with_name(f'{file.stem}_{format}.py')
    text = SCRIPT.format(
        name=path.name, file=file.name, runtime=runtime, load=load,
        call=call.format(device=next(model.parameters()).device),
        values=_values(program), average=AVERAGES[average][program.output],
        **parts)
    _check(text, program)
    return path, text


def _steps(steps: list[dict[str, Any]]) -> dict[str, str | int]:
    """Return the parts of a script that depend on the pipeline."""
    kinds = [step['type'] for step in steps]
    if len(kinds) != 3 or kinds[0] not in SAMPLERS or (
            kinds[1] != 'Resize' or kinds[2] not in CROPS):
        raise ValueError(
            'the test pipeline must be a sampler '
            f'({", ".join(SAMPLERS)}), Resize and a crop '
            f'({", ".join(CROPS)}), got {", ".join(kinds)}')
    sampler, resize, crop = steps
    length, clips = sampler['clip_len'], sampler.get('num_clips', 1)
    interval = sampler.get('frame_interval', 1)
    target = sampler.get('target_fps', 30)
    options = dict(
        T=length, K=clips, r=interval, parts=clips + 1, gaps=max(clips - 1, 1),
        scale=f'(fps or {target}) / {target}' if target else '1',
        within=f'np.arange({length}) * {interval}',
        # The rule of the released code, including float32 rounding.
        spread=_spread(length, interval))
    width, height = np.broadcast_to(crop['crop_size'], 2).tolist()
    return dict(
        sampler=SAMPLERS[kinds[0]].format(**options), T=length,
        resize=_resize(**resize), width=width, height=height,
        crop=CROPS[kinds[2]].format(w=width, h=height))


def _spread(length: int, interval: int) -> str:
    spread = torch.linspace(0, length * interval - 1, length).long()
    return f'np.array({spread.tolist()})'


def _resize(type: str, scale: tuple[int, int], keep_ratio: bool = True,
            **kwargs: Any) -> str:
    if keep_ratio:
        short, long = sorted(scale)
        factor = f'{long} / min(h, w)' if short == -1 else (
            f'min({short} / min(h, w), {long} / max(h, w))')
        size = '(int(w * f + 0.5), int(h * f + 0.5))'
        lines = ['h, w = frames[0].shape[:2]', f'f = {factor}']
    else:
        size, lines = str(tuple(scale)), []
    lines.append(f'frames = [cv2.resize(x, {size}) for x in frames]')
    return '\n'.join(f'    {line}' for line in lines)


def _values(program: ClipProgram) -> str:
    """Return the expression for the input, from BGR x [views, 3, T, H, W]."""
    if program.normalize is not None:
        return f'x[:, ::-1], np.{program.normalize}'
    x = 'x' if program.to_rgb else 'x[:, ::-1]'
    if program.mean is None:
        return f'{x}, np.float32'
    mean, std = (f'np.float32({values.flatten().tolist()}).reshape(3, 1, 1, 1)'
                 for values in (program.mean, program.std))
    return f'\n        ({x} - {mean})\n        / {std}'


def _check(text: str, program: ClipProgram) -> None:
    """Compare the clips of a script with those of the test pipeline."""
    script: dict[str, Any] = {}
    exec(compile(text, '<script>', 'exec'), script)
    model, random = program.model, np.random.default_rng(0)
    pipeline = ClipPipeline(model.cfg)
    for n, fps, shape in (
            (1, 25., (48, 64)), (2, 30., (64, 48)), (9, 12.5, (48, 48)),
            (63, 24., (50, 65)), (250, 59.94, (72, 40))):
        video = random.integers(256, size=(n, *shape, 3), dtype=np.uint8)
        data = pipeline(whole_clip(video, pipeline, fps).sample)
        want = data['inputs'] if program.normalize is not None else (
            model.data_preprocessor(pseudo_collate([data]))['inputs'][0])
        chosen = script['choose_frames'](n, fps)
        got = script['make_clips']([video[i, ..., ::-1] for i in chosen])
        if not np.array_equal(got, want.cpu().numpy()):
            raise ValueError(f'the clips of a video of {n} frames differ from '
                             "the test pipeline's")
        if got.shape[2:] != program.shape:
            raise ValueError(
                f'the test pipeline makes clips of {got.shape[2:]}, but the '
                f'file expects {program.shape}')
