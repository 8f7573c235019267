# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Random directions for the features of Performer."""
import torch
from torch import Tensor


def random_projection(num_features: int,
                      head_dims: int,
                      generator: torch.Generator | None = None) -> Tensor:
    """Normal vectors, orthogonal to one another in blocks of D.

    Each alone is distributed as a vector of D independent standard normal
    numbers: its direction is uniform, its length of the chi distribution
    with D degrees of freedom.

    Args:
        num_features: Vectors m.
        head_dims: Their width D.
        generator: Draws them; torch's own by default.

    Returns:
        [m, D].

    Raises:
        ValueError: If a size is not positive.
    """
    if num_features < 1 or head_dims < 1:
        raise ValueError('num_features and head_dims must be positive, got '
                         f'{num_features} and {head_dims}')
    num_blocks = -(-num_features // head_dims)
    normal = torch.randn(
        num_blocks, head_dims, head_dims, generator=generator)
    q, r = torch.linalg.qr(normal)
    # LAPACK chooses the signs of Q by those of its input, which leaves half
    # of the directions out.
    q = q * r.diagonal(dim1=-2, dim2=-1).sign().unsqueeze(-2)
    lengths = torch.randn(
        num_features, head_dims, generator=generator).norm(
            dim=-1, keepdim=True)
    return lengths * q.flatten(0, 1)[:num_features]
