# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Motion set as image files, for runs of mmengine's runner."""
from pathlib import Path
from typing import Any

import cv2
import decord
from rich.console import Console
from rich.progress import track

from mmvidattn.utils.files import write_atomically
from tools.harness import run_program

BATCH = 16
SPLITS = ('train', 'val')
FRAME = 'img_{:05}.png'


def frame_loaders(data: str, num_frames: int) -> dict[str, Any]:
    """Return changes to a config that make it read the frames in ``data``."""
    changes = {}
    for split in SPLITS:
        loader = f'{split}_dataloader'
        changes.update({
            f'{loader}.batch_size': BATCH,
            f'{loader}.num_workers': 0,
            f'{loader}.persistent_workers': False,
            f'{loader}.dataset': dict(
                _delete_=True,
                type='RawframeDataset',
                ann_file=f'{data}/{split}.txt',
                data_prefix=dict(img=data),
                filename_tmpl=FRAME,
                test_mode=split == 'val',
                pipeline=[
                    dict(
                        type='UniformSample',
                        clip_len=num_frames,
                        test_mode=split == 'val'),
                    dict(type='RawFrameDecode', io_backend='disk'),
                    dict(type='FormatShape', input_format='NCTHW'),
                    dict(type='PackActionInputs')
                ])
        })
    return changes


def make_data(out: Path, options: dict[str, Any], side: int) -> None:
    """Write the videos, and their frames with ``side`` pixels per side."""
    motion = {**options['motion'], **{k: options[k] for k in ('train', 'val')}}
    run_program('data/motion/make_motion.py', out / 'data', *(
        word for key, value in motion.items() for word in (f'--{key}', value)))
    for split in SPLITS:
        extract_frames(out, split, side)


def extract_frames(out: Path, split: str, side: int) -> None:
    """Write the frames of a split's videos in the size of the training.

    Reading frames is faster than decoding each video many times.
    """
    annotations = out / 'frames' / f'{split}.txt'
    if annotations.is_file():
        return
    lines = []
    videos = (out / 'data' / f'{split}.txt').read_text().splitlines()
    for line in track(
            videos,
            f'Frames of the {split} videos',
            console=Console(stderr=True)):
        video, label = line.split()
        name = Path(video).with_suffix('')
        folder = out / 'frames' / name
        folder.mkdir(parents=True, exist_ok=True)
        frames = decord.VideoReader(str(out / 'data' / video))[:].asnumpy()
        for i, frame in enumerate(frames, start=1):
            small = cv2.resize(frame[..., ::-1], (side, side))
            if not cv2.imwrite(str(folder / FRAME.format(i)), small):
                raise OSError(f'cannot write {folder / FRAME.format(i)}')
        lines.append(f'{name} {len(frames)} {label}\n')
    write_atomically(annotations, ''.join(lines))
