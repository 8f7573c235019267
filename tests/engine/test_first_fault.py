# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
from mmaction.structures import ActionDataSample

from mmvidattn.engine.first_fault import name_files


def test_names_files_of_each_kind():
    samples = [ActionDataSample(metainfo={key: f'a {key}'})
               for key in ('filename', 'frame_dir', 'video_name', 'other')]
    assert name_files(dict(data_samples=samples)) == [
        'a filename', 'a frame_dir', 'a video_name']
