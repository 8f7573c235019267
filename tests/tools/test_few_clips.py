# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
import argparse

import cv2

from tools.studies import few_clips as tool


def test_pieces_cover_a_video_in_time(motion_dir, tmp_path):
    video = motion_dir / 'val/000000.mp4'
    total = cv2.VideoCapture(str(video)).get(cv2.CAP_PROP_FRAME_COUNT)
    rows = [*tool.cut(video, tmp_path, 3, 0)]
    assert [split for _, _, split in rows] == ['train'] * 3 + ['test'] * 3
    assert {label for _, label, _ in rows} == {'000000_mp4'}
    numbers = [cv2.VideoCapture(str(path)).get(cv2.CAP_PROP_FRAME_COUNT)
               for path, _, _ in rows]
    assert sum(numbers) == total and min(numbers) > 0


def test_report_has_the_lowest_interval():
    results = [dict(videos=48, right=right, chance=0.25, seconds=10)
               for right in (24, 36)]
    lines = tool.format_report(
        {('real', 'probe'): results}, argparse.Namespace(
            clips=12, epochs=20, seeds=[0, 1])).splitlines()
    assert lines[-1] == (
        '| real | probe | 25.0 | 62.5 | 50.0, 75.0 | 36.4 | 10 |')
