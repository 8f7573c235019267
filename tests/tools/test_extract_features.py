# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
import sys
import types

import cv2
import decord
import numpy as np
import pytest
import torch
from live_fixtures import write_tsn

from mmvidattn.commands import make_parser
from mmvidattn.commands.extract_features import load_extractor, options_of


def extractor_of(config, *options):
    """Return the extractor of a command."""
    args = make_parser('extract-features').parse_intermixed_args(
        ['x', 'out', str(config), '--device', 'cpu', *map(str, options)])
    return load_extractor(options_of(args))


@pytest.fixture
def tsn(tmp_path):
    return write_tsn(tmp_path / 'tsn.py', False)


def test_features_are_the_input_of_the_classifier(video, tsn):
    extractor = extractor_of(tsn)
    rows = extractor(video)
    reader = decord.VideoReader(str(video), num_threads=1)
    fps = reader.get_avg_fps()
    assert rows.shape == (int(len(reader) / fps * 4), 512)
    # Random weights are the same in each process that resumes.
    again = extractor_of(tsn, '--batch-size', 3)
    assert again is not extractor
    np.testing.assert_allclose(again(video), rows, rtol=1e-3, atol=1e-4)
    model = extractor.recognizer.model
    for step in (0, len(rows) - 1):
        frame = reader[int((step + 0.5) / 4 * fps)].asnumpy()
        scale = 64 / min(frame.shape[:2])
        height, width = (int(s * scale + 0.5) for s in frame.shape[:2])
        frame = cv2.resize(frame, (width, height))
        top, left = (height - 64) // 2, (width - 64) // 2
        frame = frame[top:top + 64, left:left + 64].transpose(2, 0, 1)
        x = (torch.from_numpy(frame).float()[None] - 128) / 50
        with torch.no_grad():
            expected = model.backbone(x).mean(dim=(2, 3))[0]
        np.testing.assert_allclose(rows[step], expected, rtol=1e-3, atol=1e-4)


def make_edges():
    """Build a network of images that is not a recognizer."""
    return torch.nn.Sequential(
        torch.nn.Conv2d(3, 6, 3, bias=False), torch.nn.AdaptiveAvgPool2d(1),
        torch.nn.Flatten())


def test_extracts_with_a_python_callable(run_main, video, tmp_path, capsys,
                                         monkeypatch):
    monkeypatch.setitem(sys.modules, 'mine', types.SimpleNamespace(
        make_edges=make_edges))
    torch.save(make_edges().state_dict(), tmp_path / 'edges.pth')
    args = ('extract-features', video, tmp_path / 'out', 'mine:make_edges',
            '--checkpoint', tmp_path / 'edges.pth', '--device', 'cpu')
    with pytest.raises(SystemExit,
                       match='input .* may have takes, .* missing 3'):
        run_main(*args)
    given = ('--input', 'takes=frames', 'mean=0.5,0.4,0.3', 'std=1',
             'resize=32', '--sample-fps', 24, '--every', 6)
    run_main(*args, *given)
    assert '6 features per step' in capsys.readouterr().out
    rows = np.load(tmp_path / 'out' / f'{video.stem}.npy')
    reader = decord.VideoReader(str(video))
    assert rows.shape == (
        int(len(reader) / reader.get_avg_fps() * 4 + 1e-6), 6)
    # The same command resumes; other inputs would give other features.
    run_main(*args, *given)
    with pytest.raises(SystemExit, match='every was 6 and now is 3'):
        run_main(*args, *given[:-1], 3)
    with pytest.raises(SystemExit, match="input was .*'resize': 32.* now is"):
        run_main(*args, *given[:3], 'std=1', 'resize=48', *given[5:])
