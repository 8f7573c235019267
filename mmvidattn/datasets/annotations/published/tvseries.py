# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Reader of TVSeries' lists, ``GT-{train,val,test}.txt``."""
from collections.abc import Iterator
from pathlib import Path

from ..video_segment import VideoSegment, read_lines, seconds, segment_reader

# In the order of the released targets and checkpoints.
CLASSES = (
    'Pick something up', 'Point', 'Drink', 'Stand up', 'Run', 'Sit down',
    'Read', 'Smoke', 'Drive car', 'Open door', 'Give something',
    'Use computer', 'Write', 'Go down stairway', 'Close door',
    'Throw something', 'Go up stairway', 'Get in/out of car', 'Hang up phone',
    'Eat', 'Answer phone', 'Dress up', 'Clap', 'Undress', 'Kiss', 'Fall/trip',
    'Wave', 'Pour', 'Punch', 'Fire weapon')
# In the released order. Training uses the lists "train" and "val".
VIDEOS = dict(
    train=(
        '24_ep1', '24_ep2', '24_ep3', 'Breaking_Bad_ep1', 'Breaking_Bad_ep2',
        'How_I_Met_Your_Mother_ep1', 'How_I_Met_Your_Mother_ep2',
        'How_I_Met_Your_Mother_ep3', 'How_I_Met_Your_Mother_ep4',
        'How_I_Met_Your_Mother_ep5', 'How_I_Met_Your_Mother_ep6',
        'Mad_Men_ep1', 'Mad_Men_ep2', 'Modern_Family_ep1',
        'Modern_Family_ep2', 'Modern_Family_ep3', 'Modern_Family_ep4',
        'Modern_Family_ep6', 'Sons_of_Anarchy_ep1', 'Sons_of_Anarchy_ep2'),
    test=(
        '24_ep4', 'Breaking_Bad_ep3', 'Mad_Men_ep3',
        'How_I_Met_Your_Mother_ep7', 'How_I_Met_Your_Mother_ep8',
        'Modern_Family_ep5', 'Sons_of_Anarchy_ep3'))


@segment_reader
def read_tvseries(path: str | Path,
                  subset: str = 'all') -> Iterator[VideoSegment]:
    """Read tab-separated lines ``video, class, start, end, ...``."""
    for line, where in read_lines(path):
        words = [word.strip() for word in line.split('\t')]
        if len(words) < 4:
            raise ValueError(f'{where}: expected video, class, start and end, '
                             f'separated by tabs, got {line!r}')
        yield VideoSegment(
            where, words[0], seconds(words[2], where),
            seconds(words[3], where), dict(action=words[1]), where, subset)
