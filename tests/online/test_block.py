# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
import pytest
import torch

from mmvidattn.online.block import OnlineBlock


@pytest.mark.parametrize('branch', ['self', 'memory', 'ffn'])
def test_drops_each_branch_in_training(branch):
    """With a dropout rate of 1, only the residual of the branch is left."""
    torch.manual_seed(0)
    block = OnlineBlock(8, 2, 16, drop_rate=1.).train()
    x, y = torch.randn(2, 3, 8), torch.randn(2, 3, 8)
    if branch == 'self':
        got, expected = block.add_attended(x, y)[0], block.self_norm(x)
    elif branch == 'memory':
        got = block(x, y)
        expected = block.ffn_norm(block.memory_norm(x))
    else:
        # A bias of the last layer, so that dropped activations do not hide a
        # missing dropout of the branch.
        torch.nn.init.normal_(block.ffn[-1].bias)
        got, expected = block(x), block.ffn_norm(x)
    torch.testing.assert_close(got, expected)
