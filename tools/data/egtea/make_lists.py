# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Write lists of EGTEA Gaze+ for mmaction2 from its annotations.

    python tools/data/egtea/make_lists.py data/egtea --split 1

The README.md next to this file describes the downloads and their folders. This
program writes egtea_{train,val}_splitN.txt with a clip and its class (from 0)
on each line, writes label_map.txt, and reports missing clips.
"""
import argparse
from pathlib import Path

from mmvidattn.datasets.annotations.published.video_lists import (
    read_egtea_actions,
    read_egtea_clips,
)

ANNOTATIONS = 'action_annotation'
CLIPS = 'cropped_clips'
PARTS = dict(train='train', val='test')


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('root', type=Path, help='folder of the data set')
    parser.add_argument('--split', type=int, choices=(1, 2, 3), default=1)
    args = parser.parse_args()
    try:
        folder = args.root / ANNOTATIONS
        lists = {
            part: read_egtea_clips(folder / f'{name}_split{args.split}.txt')
            for part, name in PARTS.items()
        }
        classes = folder / 'action_idx.txt'
        names = read_egtea_actions(classes) if classes.is_file() else []
    except ValueError as error:
        raise SystemExit(f'make_lists.py: {error}; see README.md next to '
                         'make_lists.py') from None
    for part, clips in lists.items():
        out = args.root / f'egtea_{part}_split{args.split}.txt'
        out.write_text(''.join(f'{clip} {label}\n' for clip, label in clips))
        missing = [clip for clip, _ in clips
                   if not (args.root / CLIPS / clip).is_file()]
        print(f'{out}: {len(clips)} clips, '
              f'{len({label for _, label in clips})} classes'
              + (f'; {len(missing)} clips are missing, such as {missing[0]}'
                 if missing else ''))
    if names:
        (args.root / 'label_map.txt').write_text('\n'.join(names) + '\n')


if __name__ == '__main__':
    main()
