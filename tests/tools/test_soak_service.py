# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
import os
import shutil

import pytest

from tools.soak import service as soak

pytestmark = pytest.mark.slow


def as_planned(plan):
    return sorted(((kind, name, at) for name, start, end in plan
                   for kind, at in (('start', start), ('end', end))),
                  key=lambda event: event[2])


@pytest.mark.parametrize('change, wrong', [
    (lambda events: events, 0),
    (lambda events: events[:6] + events[7:], 1),
    (lambda events: events + [events[6]], 1),
    (lambda events: events + [('start', 'red', 25.)], 1),
    (lambda events: [(kind, name, at + 2) for kind, name, at in events], 12),
], ids=['right', 'lost', 'doubled', 'invented', 'late'])
def test_finds_wrong_events(change, wrong):
    plan = soak.plan_of(0, 50.)
    events = change(as_planned(plan))
    compared, lines = soak.compare(events, plan, [], 0., 50., 1.)
    # The last action ends too close to the end of the comparison.
    assert compared == 7
    assert (len(lines) == 0) == (wrong == 0) and len(lines) >= wrong
    # Actions that overlap a fault are not compared.
    compared, lines = soak.compare(events, plan, [(0., 50.)], 0., 50., 1.)
    assert (compared, lines) == (0, [])


def test_finds_wrong_ids():
    events = [
        {'id': 0, 'event': 'start', 'class': 'red'},
        {'id': 1, 'event': 'end', 'class': 'red', 'start_id': 0},
        {'id': 2, 'event': 'start', 'class': 'red'}]
    assert soak.check_numbers(events) == []
    assert len(soak.check_numbers(events[:1] + events[2:])) == 2
    assert len(soak.check_numbers(events[1:])) == 2


@pytest.mark.parametrize('seconds, grows, wrong', [
    (600, (0, 0, 0), []), (600, (60, 0, 0), ['memory']),
    # The process is too young to judge its memory.
    (120, (60, 6, 0), ['handles'])])
def test_finds_growth(seconds, grows, wrong):
    shares = [i / 100 for i in range(101)]
    life = [(seconds * x, *(700 + grow * x * 3 for grow in grows), 30 * x)
            for x in shares]
    text, figures, lines = soak.check_usage({1: life[:3], 2: life})
    assert [line.split()[0] for line in lines] == wrong
    assert text.startswith(f'{seconds} s: memory ')
    assert figures['cores'] == pytest.approx(30 / seconds, abs=1e-3)
    assert len(figures['memory_mib']) == soak.PARTS
    assert figures['memory_mib'] == sorted(figures['memory_mib'])


def test_ten_minutes_of_a_service(run_tool, tmp_path):
    if shutil.which('ffmpeg') is None:
        pytest.skip('needs ffmpeg')
    modules = os.environ.get('MMVIDATTN_NODE_MODULES')
    rtsp = ['--rtsp', modules] if modules else []
    done = run_tool('soak/service.py', '--minutes', 10, *rtsp, cwd=tmp_path,
                    limit=780)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.endswith('passed\n')
