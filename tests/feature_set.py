# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Feature streams with the video and step number in each feature."""
import numpy as np

LENGTHS = dict(a=70, b=55, c=90, short=10)
SEGMENTS = dict(
    a=[(5, 12, 1), (20, 26, 2), (60, 66, 1)],
    b=[(3, 13, 2), (30, 34, 1)],
    c=[(10, 30, 1), (40, 42, 2), (70, 80, 2)],
    short=[(2, 6, 1)])
PIPELINE = [dict(type='LoadFeatureWindow'), dict(type='PackFeatureInputs')]


def write_set(root, lengths=LENGTHS):
    """Write rgb (video, step, 0), flow (step, video) and three classes."""
    for name in 'rgb', 'flow', 'target_perframe':
        (root / name).mkdir(parents=True, exist_ok=True)
    for number, (video, length) in enumerate(lengths.items()):
        steps = np.arange(length, dtype=np.float32)
        here = np.full_like(steps, number)
        np.save(root / f'rgb/{video}.npy',
                np.stack([here, steps, 0 * steps], axis=1))
        np.save(root / f'flow/{video}.npy', np.stack([steps, here], axis=1))
        targets = np.zeros((length, 3), np.uint8)
        for start, end, label in SEGMENTS[video]:
            targets[start:end, label] = 1
        targets[:, 0] = ~targets.any(axis=1)
        np.save(root / f'target_perframe/{video}.npy', targets)
    (root / 'videos.txt').write_text('\n'.join(lengths) + '\n')
    (root / 'classes.txt').write_text('background\none\ntwo\n')
    return root


def write_segments(path, segments):
    """Write segments given by video, first step, last step and class.

    Frames are counted at 30 a second, and steps at 4.
    """
    path.write_text(''.join(
        f'{i}, {video}, {start * 7.5 + 1:.0f}, {end * 7.5 - 1:.0f}, 0, 1, '
        f'{label}\n' for i, (video, start, end, label) in enumerate(segments)))
    return str(path)


def options(root, **kwargs):
    """Options of a dataset with a long memory of 24 and a work memory of 16.
    """
    default = dict(
        ann_file='videos.txt',
        data_root=str(root),
        data_prefix=dict(
            rgb='rgb', flow='flow', gt_action='target_perframe'),
        metainfo=dict(classes=f'{root}/classes.txt'),
        pipeline=PIPELINE, long_steps=24, long_rate=4, work_steps=16)
    return {**default, **kwargs}
