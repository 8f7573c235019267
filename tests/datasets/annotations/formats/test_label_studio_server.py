# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Pre-annotations and exports of a real Label Studio server.

It has many dependencies: install it in a separate environment, and name its
program in the variable LABEL_STUDIO.
"""
import json
import math
import os
import shutil
import socket
import subprocess
import time
import urllib.request

import pytest

from mmvidattn.datasets.annotations.formats import (
    VideoInfo,
    read_annotations,
    write_annotations,
)
from mmvidattn.datasets.annotations.video_segment import VideoSegment

PROGRAM = os.environ.get('LABEL_STUDIO') or shutil.which('label-studio')
TOKEN = '0123456789abcdef0123456789abcdef01234567'
FPS = {'day 1/a.mp4': 25., 'b.mp4': 30000 / 1001, 'empty.mp4': 10.}
START_SECONDS = 600
HOST = 'http://127.0.0.1/'

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not PROGRAM, reason='label-studio is not installed: '
                       'name its program in the variable LABEL_STUDIO')]


@pytest.fixture(scope='module')
def api(tmp_path_factory):
    """Function that calls a new server's API."""
    folder = tmp_path_factory.mktemp('label_studio')
    with socket.socket() as free:
        free.bind(('127.0.0.1', 0))
        port = free.getsockname()[1]
    base = f'http://127.0.0.1:{port}'

    def call(method, path, body=None):
        request = urllib.request.Request(
            base + path, method=method,
            data=None if body is None else json.dumps(body).encode(),
            headers={'Authorization': f'Token {TOKEN}',
                     'Content-Type': 'application/json'})
        with urllib.request.urlopen(request, timeout=120) as response:
            return json.loads(response.read() or 'null')

    # No analytics, no look-up of versions.
    environment = dict(
        os.environ, LABEL_STUDIO_BASE_DATA_DIR=str(folder),
        LABEL_STUDIO_USERNAME='a@example.org',
        LABEL_STUDIO_PASSWORD='a-long-password', LABEL_STUDIO_USER_TOKEN=TOKEN,
        LABEL_STUDIO_ENABLE_LEGACY_API_TOKEN='true', SENTRY_DSN='',
        FRONTEND_SENTRY_DSN='', COLLECT_ANALYTICS='false',
        LATEST_VERSION_CHECK='false', DJANGO_DB='sqlite')
    environment.pop('PYTHONPATH', None)
    with (folder / 'log.txt').open('w') as log, subprocess.Popen(
            [PROGRAM, 'start', '--no-browser', '--internal-host', '127.0.0.1',
             '--port', str(port)], env=environment, stdout=log,
            stderr=subprocess.STDOUT, cwd=folder) as process:
        try:
            for _ in range(START_SECONDS):
                try:
                    urllib.request.urlopen(f'{base}/version', timeout=5)
                    break
                except OSError:
                    assert process.poll() is None, (
                        folder / 'log.txt').read_text()[-2000:]
                    time.sleep(1)
            yield call
        finally:
            process.terminate()


def segment(video, first, stop, label, score=None):
    fps = FPS[video]
    return VideoSegment(f'r{first}{label}'.replace(' ', '_'), video,
                        first / fps, stop / fps, dict(action=label), 'here',
                        score=score)


SEGMENTS = [
    segment('day 1/a.mp4', 25, 50, 'run & "jump"', 0.5),
    # The same times, an overlap, a point and an unknown end.
    segment('day 1/a.mp4', 25, 50, 'open', 0.75),
    segment('day 1/a.mp4', 38, 80, 'open', 0.25),
    segment('day 1/a.mp4', 90, 90, 'open', 0.125),
    segment('b.mp4', 7, math.nan, 'run & "jump"', 0.9),
    segment('b.mp4', 100, 333, 'é <x>', 1.),
]


def contents(segments, scores=True):
    """Return what must be equal, without the address of the host."""
    return sorted((urllib.request.unquote(one.video.removeprefix(HOST)),
                   round(one.start, 6), str(round(one.end, 6)),
                   one.labels['action'], one.score if scores else None)
                  for one in segments)


def test_server_returns_pre_annotations_and_corrections(api, tmp_path):
    # 1. Make a project with our config and pre-annotations.
    path = tmp_path / 'tasks.json'
    assert write_annotations(
        SEGMENTS, path, 'label-studio', url=HOST,
        videos={name: VideoInfo(fps) for name, fps in FPS.items()}) == []
    project = api('POST', '/api/projects', dict(
        title='events', label_config=(
            tmp_path / 'tasks_config.xml').read_text()))['id']
    done = api('POST', f'/api/projects/{project}/import',
               json.loads(path.read_text()))
    assert (done['task_count'], done['prediction_count']) == (3, 2)

    def export():
        path.write_text(json.dumps(api(
            'GET', f'/api/projects/{project}/export?exportType=JSON'
            '&download_all_tasks=true')))
        return read_annotations(path)

    # 2. The server stores the contents of our file.
    tasks = api('GET', f'/api/tasks?project={project}&fields=all')['tasks']
    predicted = [task for task in tasks if task['predictions']]
    assert len(predicted) == 2
    path.write_text(json.dumps(predicted))
    assert contents(read_annotations(path).segments) == contents(SEGMENTS)
    # 3. A user accepts all predictions, and adds a segment of two labels.
    more = dict(
        id='mine', from_name='timelineLabels', to_name='video',
        type='timelinelabels', value=dict(
            ranges=[dict(start=101, end=125)],
            timelinelabels=['open', 'é <x>']))
    for task in tasks:
        accepted = [dict(region, origin='prediction')
                    for one in task['predictions'] for region in one['result']]
        api('POST', f'/api/tasks/{task["id"]}/annotations/',
            dict(result=[*accepted, more]))
    found = export()
    assert found.format == 'label-studio'
    added = [segment(video, 100, 125, label)
             for video in FPS for label in ('open', 'é <x>')]
    assert contents(found.segments, False) == contents(
        [*SEGMENTS, *added], False)
    assert len(found.videos) == len(FPS)
    # 4. Times of a corrected segment change.
    task = api('GET', f'/api/tasks?project={project}&fields=all')['tasks'][0]
    annotation = task['annotations'][0]
    annotation['result'][-1]['value']['ranges'] = [dict(start=1, end=9)]
    api('PATCH', f'/api/annotations/{annotation["id"]}/',
        dict(result=annotation['result']))
    assert len({*contents(export().segments)}
               - {*contents(found.segments)}) == 2
