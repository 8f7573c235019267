# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
from made_videos import LENGTH, write_video

from mmvidattn.datasets.broken_files.find_fault import find_fault


def test_decodes_every_frame_or_only_the_last(tmp_path):
    path = write_video(tmp_path / 'a.mkv', 'mjpeg', pix_fmt='yuvj420p')
    data = bytearray(path.read_bytes())
    first, after = [i for i in range(len(data))
                    if data[i:i + 3] == b'\xff\xd8\xff'][LENGTH // 2:][:2]
    data[first:after - 40] = bytes(after - 40 - first)
    path.write_bytes(data)
    assert find_fault(str(path)) is None
    assert find_fault(str(path), every_frame=True) is not None


def test_reports_a_missing_file(tmp_path):
    assert isinstance(find_fault(str(tmp_path / 'video.mp4')),
                      FileNotFoundError)
