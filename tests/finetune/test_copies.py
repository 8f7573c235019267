# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""No video is in training and in validation, under whatever name."""
import json
import os
import shutil

import pytest

from mmvidattn.finetune import FineTuneOptions
from mmvidattn.finetune.plan import make_plan
from mmvidattn.finetune.split import find_copies


@pytest.fixture
def root(tmp_path, write_gray):
    """Eight videos of two classes, each with a copy of another kind."""
    for i in range(8):
        path = tmp_path / f'mine/{"ab"[i % 2]}/{i}.mp4'
        write_gray(path, range(40 * (i % 4), 40 * (i % 4) + 40))
        # Videos of equal size differ, too.
        with open(path, 'ab') as file:
            file.write(b'%08d' % i)
        other = path.with_name(f'copy{i}.mp4')
        [shutil.copy, lambda a, b: b.symlink_to(a), os.link][i % 3](
            path, other)
    return tmp_path / 'mine'


@pytest.fixture
def plan_of(capsys):
    """Function that returns a plan, and what it prints."""
    def plan(source, **options):
        made = make_plan(FineTuneOptions(
            source, quick=True, workers=1, **options))
        return made, ' '.join(capsys.readouterr().out.split())

    return plan


def test_finds_copies_links_and_paths(root):
    files = ['a/0.mp4', './a/0.mp4', 'a/copy0.mp4', 'b/1.mp4', 'b/copy1.mp4',
             'b/../a/0.mp4', 'a/2.mp4']
    assert find_copies(root, files) == {
        'a/0.mp4': 'a/0.mp4', './a/0.mp4': 'a/0.mp4',
        'a/copy0.mp4': 'a/0.mp4', 'b/1.mp4': 'b/1.mp4',
        'b/copy1.mp4': 'b/1.mp4', 'b/../a/0.mp4': 'a/0.mp4',
        'a/2.mp4': 'a/2.mp4'}


def content(root, splits):
    return {name: {(root / file).resolve().read_bytes() for file in side}
            for name, side in splits.items()}


@pytest.mark.parametrize('seed', range(2))
def test_copies_stay_in_one_split(root, plan_of, seed):
    plan, printed = plan_of(root, seed=seed)
    used = content(root, plan.videos)
    assert used['train'] and used['val']
    assert not used['train'] & used['val']
    assert ('note: 8 videos with the content of another one, kept in its '
            'split: a/copy0.mp4 (a/0.mp4)') in printed


def test_several_classes_and_similar_classes(root, plan_of):
    shutil.copytree(root / 'a', root / 'A ')
    shutil.move(root / 'A ', root / 'A')
    plan, printed = plan_of(root)
    used = content(root, plan.videos)
    assert not used['train'] & used.get('val', set())
    assert ('several names of a class differ only in blanks or case: '
            "'A' and 'a'") in printed
    assert ('4 videos in more than one class: A/0.mp4 (A) and a/0.mp4 (a)'
            in printed)


def test_given_splits_with_copies_are_reported(root, plan_of):
    path = root / 'mine.csv'
    path.write_text('file,label,split\na/0.mp4,x,train\na/copy0.mp4,x,val\n'
                    'b/1.mp4,y,train\nb/3.mp4,y,val\n')
    assert ('note: 1 video with the content of a video in another of the '
            'given splits, so scores will be too high: a/copy0.mp4 (a/0.mp4)'
            ) in plan_of(path)[1]


def test_copies_of_streams_stay_in_one_split(root, tmp_path, plan_of):
    names = [path.relative_to(root).as_posix()
             for path in sorted(root.rglob('*.mp4'))]
    # Copies without events are background.
    path = tmp_path / 'mine.json'
    path.write_text(json.dumps(dict(database={name: dict(annotations=[
        dict(label=label, segment=[1, 3])
        for label in 'xy' * (name[:-4] not in ('a/copy2', 'b/copy5'))])
        for name in names})))
    plan, printed = plan_of(path, stream=True, videos=root)
    used = content(root, plan.videos)
    assert sorted(used) == ['test', 'train', 'val']
    assert sum(map(len, used.values())) == 8
    assert sum(map(len, plan.videos.values())) == 16
    assert '8 videos with the content of another one' in printed
