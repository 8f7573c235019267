# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Lists of EGTEA Gaze+ for mmaction2 from its own annotations.

    python tools/data/egtea/make_lists.py data/egtea --split 1

See README.md beside this file for what to download, and where to put it.
Writes egtea_{train,val}_splitN.txt, a clip and its class from 0 on each line,
and label_map.txt, and says which clips are missing.
"""
import argparse
from pathlib import Path

ANNOTATIONS = 'action_annotation'
CLIPS = 'cropped_clips'
PARTS = dict(train='train', val='test')
# What a clip's name ends with: two times in ms, first and last frame.
TAIL_FIELDS = 4


def clip_path(name: str) -> str:
    """The file of a clip below ``cropped_clips``, in its session's folder.

    OP01-R01-PastaSalad-1002316-1004005-F024051-F024101 is of the session
    OP01-R01-PastaSalad.

    Raises:
        ValueError: If it is no name of a clip.
    """
    fields = name.rsplit('-', TAIL_FIELDS)
    if len(fields) != TAIL_FIELDS + 1 or not fields[-1].startswith('F'):
        raise ValueError(f'{name!r} is no name of a clip of EGTEA Gaze+, '
                         'SESSION-START-END-FRAME-FRAME')
    return f'{fields[0]}/{name}.mp4'


def read_split(path: Path) -> list[tuple[str, int]]:
    """Clips and classes, from 0: the file counts from 1.

    A line has a clip, its action, its verb and its nouns.

    Raises:
        FileNotFoundError: If there is no such file.
        ValueError: If a line is not of that kind.
    """
    if not path.is_file():
        raise FileNotFoundError(f'no file {path}; see README.md beside '
                                'make_lists.py')
    clips = []
    for number, line in enumerate(path.read_text().splitlines(), start=1):
        fields = line.split()
        if not fields:
            continue
        if len(fields) < 2 or not fields[1].isdecimal() or fields[1] == '0':
            raise ValueError(f'{path}, line {number}: expected a clip and its '
                             f'action, from 1, got {line!r}')
        clips.append((clip_path(fields[0]), int(fields[1]) - 1))
    return clips


def read_classes(path: Path) -> list[str]:
    """The names of the actions: on each line a name and its number."""
    names = {}
    for line in path.read_text().splitlines():
        name, _, number = line.strip().rpartition(' ')
        if name and number.isdecimal():
            names[int(number)] = name.strip()
    if sorted(names) != list(range(1, len(names) + 1)):
        raise ValueError(f'{path}: expected a name and a number from 1 on '
                         'each line')
    return [names[number] for number in sorted(names)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument('root', type=Path, help='folder of the data set')
    parser.add_argument('--split', type=int, choices=(1, 2, 3), default=1)
    args = parser.parse_args()
    try:
        folder = args.root / ANNOTATIONS
        lists = {
            part: read_split(folder / f'{name}_split{args.split}.txt')
            for part, name in PARTS.items()
        }
        classes = folder / 'action_idx.txt'
        names = read_classes(classes) if classes.is_file() else []
    except (FileNotFoundError, ValueError) as error:
        raise SystemExit(f'make_lists.py: {error}') from None
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
