# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Settings of the script that classifies videos with an exported file.

``classify.py`` is copied beside the file, and reads these settings from its
metadata. It needs the runtime of the file, numpy, cv2 and av, but not this
package.
"""
import base64
import shutil
import zlib
from pathlib import Path
from typing import Any

import numpy as np
from mmengine.dataset import Compose, pseudo_collate

from ..apis import video_clips
from ..apis.bundle_types.registry import types_of
from . import classify
from .metadata import frame_steps
from .programs import ClipProgram, Program

# Frame numbers are recorded for videos of up to this number of frames.
MAX_FRAMES = 10_000
# Left and top corner of each crop, for tall and for wide frames, as numbers in
# the list of 0, half of the space beside the crop, twice this half (the space
# may be odd), and all of it.
CROPS = dict(
    CenterCrop=[[[1, 1]]] * 2,
    ThreeCrop=[[[0, 0], [2, 2], [1, 1]]] * 2,
    UniformThreeCrop=[[[1, 0], [1, 1], [1, 3]], [[0, 1], [1, 1], [3, 1]]])


def script_settings(program: Program) -> dict[str, Any]:
    """Return the settings of the script for a program, as types of JSON.

    The frame numbers are those that the config's sampler chooses for each
    length of a video. The clips of the script are compared with the clips of
    the test pipeline.

    Raises:
        ValueError: If the script cannot repeat the config's test pipeline.
    """
    if not isinstance(program, ClipProgram):
        raise ValueError('it is only for clip models, got a '
                         f'{type(program).__name__}')
    model = program.model
    head = model.cls_head
    average = getattr(head, 'average_clips', None)
    if average not in ('prob', 'score') or getattr(
            head, 'multi_class', False) or getattr(head, 'splits', None):
        raise ValueError(f'{type(head).__name__} does not average one softmax '
                         f'over views (average_clips={average!r})')
    steps = frame_steps(model.cfg)
    kinds = [step['type'] for step in steps]
    if len(kinds) != 3 or kinds[1] != 'Resize' or kinds[2] not in CROPS or (
            steps[1].get('interpolation', 'bilinear') != 'bilinear'):
        raise ValueError('the test pipeline must be a sampler, Resize '
                         f'(bilinear) and a crop ({", ".join(CROPS)}), got '
                         f'{", ".join(kinds)}')
    keep_ratio, scale = steps[1].get('keep_ratio', True), steps[1]['scale']
    short, long = sorted(scale) if keep_ratio else (1, None)
    width, height = np.broadcast_to(steps[2]['crop_size'], 2).tolist()
    inside = program.normalize is not None
    mean, std = ([default] * 3 if values is None or inside else
                 values.flatten().tolist() for values, default in (
                     (program.mean, 0.), (program.std, 1.)))
    settings = dict(
        frames=_record(model.cfg), max_frames=MAX_FRAMES,
        clip_len=steps[0]['clip_len'],
        size=None if keep_ratio else list(scale),
        short=long if short == -1 else short,
        long=None if short == -1 else long,
        crop=[height, width], corners=CROPS[kinds[2]],
        channels=[2, 1, 0] if program.to_rgb and not inside else [0, 1, 2],
        mean=mean, std=std, dtype=program.normalize or 'float32',
        device=str(next(model.parameters()).device),
        log=program.output == 'probabilities', mean_first=average == 'score')
    _check(settings, program)
    return settings


def copy_script(file: Path) -> Path:
    """Copy the script beside an exported file, and return its path."""
    path = file.with_name(f'{file.stem}_{file.suffix[1:]}.py')
    shutil.copyfile(classify.__file__, path)
    return path


def _record(cfg: Any) -> str:
    """Record the frame numbers for 1, 2, ... frames, as compressed text."""
    steps = video_clips.test_steps(cfg).sample
    with types_of(cfg):
        sampler = Compose(steps)

    def sample(n: int, fps: float = 30.) -> np.ndarray:
        return np.ravel(sampler(video_clips.sample_of(n, avg_fps=fps))[
            'frame_inds'])

    for n in 7, 300:
        # Random samplers differ in one of ten trials.
        trials = [sample(n, fps) for fps in (30., 12.5, 60., *[30.] * 7)]
        if not all(np.array_equal(trial, trials[0]) for trial in trials):
            raise ValueError('the frames that the test pipeline chooses '
                             'depend on the frame rate or on chance')
    table = np.stack([sample(n) for n in range(1, MAX_FRAMES + 1)])
    changes = np.diff(table, axis=0, prepend=0)
    return base64.b64encode(zlib.compress(
        changes.astype('<i2').tobytes(), 9)).decode()


def _check(settings: dict[str, Any], program: ClipProgram) -> None:
    """Compare the clips of the script and of the test pipeline."""
    model, random = program.model, np.random.default_rng(0)
    pipeline = video_clips.ClipPipeline(model.cfg)
    for n, shape in ((1, (48, 64)), (2, (64, 48)), (9, (48, 48)),
                     (63, (50, 65)), (250, (72, 40))):
        video = random.integers(256, size=(n, *shape, 3), dtype=np.uint8)
        clip = next(video_clips.read_clips(video, pipeline, 30.))
        data = pipeline(clip.sample)
        want = data['inputs'] if program.normalize is not None else (
            model.data_preprocessor(pseudo_collate([data]))['inputs'][0])
        got = classify.make_clips(
            list(video[classify.choose_frames(n, settings)]), settings)
        if not np.array_equal(got, want.cpu().numpy()):
            raise ValueError(f'the clips of a video of {n} frames differ from '
                             "the test pipeline's")
        if got.shape[2:] != program.shape:
            raise ValueError(
                f'the test pipeline makes clips of {got.shape[2:]}, but the '
                f'file expects {program.shape}')
