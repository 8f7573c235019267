# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
import torch
from torch import Tensor, nn

MOST_ROWS = 64
# Before 2.7, torch does not tell the two apart.
_is_exporting = getattr(
    torch.compiler, 'is_exporting', torch.compiler.is_compiling)


class FewRowsLinear(nn.Linear):
    """``nn.Linear``, faster where a step of a stream has few tokens.

    MKL copies the weight of ``x W^T`` into an order of its own in each call,
    which with few rows takes as long as the product. It need not for
    ``W x^T``. In float32, on a CPU and without gradients that is computed, in
    compiled code as well; an exported program, whose rows may be any number,
    has ``x W^T``.
    """

    def forward(self, x: Tensor) -> Tensor:
        """[*, in_features] to [*, out_features]."""
        rows = x.numel() // self.in_features
        # First of all: a size that is asked about is fixed in an export.
        if _is_exporting() or not (
                1 < rows <= MOST_ROWS and x.device.type == 'cpu'
                and x.dtype == self.weight.dtype == torch.float32
                and not torch.is_grad_enabled()
                and not torch.is_autocast_enabled('cpu')):
            return super().forward(x)
        columns = x.reshape(rows, self.in_features).t()
        y = torch.addmm(self.bias[:, None], self.weight, columns)
        return y.t().reshape(*x.shape[:-1], self.out_features)
