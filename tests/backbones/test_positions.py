# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
import pytest
import torch
import torch.nn.functional as F

from mmvidattn.backbones.positions import resize_positions


def test_keeps_a_table_of_the_right_size():
    table = torch.randn(1, 3, 4, 5, 2)
    assert torch.equal(resize_positions(table, (3, 4, 5)), table)


def test_repeats_image_tables():
    table = torch.randn(1, 1, 4, 5, 2)
    out = resize_positions(table, (3, 4, 5))
    assert torch.equal(out, table.expand(-1, 3, -1, -1, -1))


@pytest.mark.parametrize('grid', [(6, 5, 4), (2, 3, 9), (3, 5, 3)])
def test_matches_interpolation_of_positions_then_frames(grid):
    table = torch.randn(1, 3, 4, 6, 2)
    times = F.interpolate(
        table[0].flatten(1).T[None], grid[0], mode='linear')[0].T
    frames = [
        F.interpolate(
            frame.view(4, 6, 2).permute(2, 0, 1)[None], grid[1:],
            mode='bicubic')[0].permute(1, 2, 0) for frame in times
    ]
    out = resize_positions(table, grid)
    assert out.shape == (1, *grid, 2)
    assert torch.allclose(out[0], torch.stack(frames), atol=1e-6)


def test_keeps_rows_and_columns_apart():
    # Positions that depend on the row only.
    table = torch.arange(4.).view(1, 1, 4, 1, 1).expand(-1, 2, -1, 6, -1)
    out = resize_positions(table, (4, 8, 3))
    assert (out[0, :, 1:] > out[0, :, :-1]).all()
    assert torch.allclose(out, out[:, :1, :, :1].expand_as(out))


def test_keeps_the_dtype():
    table = torch.randn(1, 2, 2, 2, 2).half()
    assert resize_positions(table, (3, 3, 3)).dtype == torch.float16
