# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Linear randomised attention: a few samples stand for all the keys."""
import torch
from torch import Tensor

from ..attention_inputs import check_attention_inputs, zero_masked
from ..precision import at_least_float32, without_autocast

WEIGHTINGS = ('mis-opt', 'mis-bh', 'mis-biased')


def lara_attention(q: Tensor,
                   k: Tensor,
                   v: Tensor,
                   query_landmarks: Tensor,
                   key_landmarks: Tensor,
                   omega: Tensor | None = None,
                   *,
                   weighting: str = 'mis-opt',
                   alpha: float = 1.,
                   key_mask: Tensor | None = None) -> Tensor:
    r"""Softmax attention estimated by multiple importance sampling.

    With ``xi(x, w) = (w x - |x|^2 / 2) / sqrt(D)`` and a sample
    :math:`\omega_c` for each of C landmarks :math:`\mu_c`, the sum of the
    query's and the key's,

    .. math::
        y_n &= \sum_c s_{nc} \sum_m softmax_m(xi(k_m, \omega_c)) v_m \\
        s_n &= softmax_c(\log a_{nc} + xi(q_n, \omega_c)
               + \log \sum_m \exp xi(k_m, \omega_c) - \log p_c)

    The weightings differ in the density :math:`p_c` that a sample is taken
    to come from and in its weight :math:`a_{nc}`:

    ============ ================================== ==========================
    weighting    p_c                                a_nc
    ============ ================================== ==========================
    'mis-opt'    that of its landmark,              the landmark's share in
                 exp xi(mu_c, omega_c)              the mixture, plus
                                                    alpha (t_nc - mean_c t_nc)
    'mis-bh'     the mixture,                       1
                 sum_d exp xi(mu_d, omega_c)
    'mis-biased' the mixture                        exp(mu_c q_n / sqrt(D))
    ============ ================================== ==========================

    where t is the softmax over the queries n of the products of query and
    query landmark, and a is at least 1e-8. All is computed in float32 when
    the inputs are of lower precision, whatever autocast says: in float16
    that bound would be zero.

    Args:
        q: Queries, [*, N, G, D].
        k: Keys, [*, M, G, D].
        v: Values, [*, M, G, E].
        query_landmarks: [*, C, G, D].
        key_landmarks: [*, C, G, D].
        omega: The samples, [*, C, G, D]; the landmarks by default.
        weighting: 'mis-opt', 'mis-bh' (balance heuristic) or 'mis-biased'.
        alpha: How far 'mis-opt' departs from the balance heuristic.
        key_mask: Bool, [*, M], True where a key counts. Where none does, the
            result is zero.

    Returns:
        [*, N, G, E], of the dtype of ``v``.

    Raises:
        ValueError: If the shapes do not fit or ``weighting`` is unknown.
    """
    if weighting not in WEIGHTINGS:
        raise ValueError(
            f'weighting must be one of {WEIGHTINGS}, got {weighting!r}')
    if omega is None:
        omega = query_landmarks + key_landmarks
    check_attention_inputs('lara_attention', q, k, v, key_mask)
    _check_landmarks(q, query_landmarks, key_landmarks, omega)
    k, v = zero_masked(key_mask, k, v)
    dtype = v.dtype
    q, k, v, query_landmarks, key_landmarks, omega = (
        x.transpose(-3, -2) for x in at_least_float32(
            q, k, v, query_landmarks, key_landmarks, omega))
    scale = q.shape[-1]**-0.5
    with without_autocast(q.device.type):
        of_keys = _log_kernel(omega, k)
        if key_mask is not None:
            # Where no key counts all do: their values are the zeros that the
            # result is to be.
            key_mask = key_mask | ~key_mask.any(dim=-1, keepdim=True)
            of_keys = of_keys.masked_fill(~key_mask[..., None, None, :],
                                          -torch.inf)
        kv = of_keys.softmax(dim=-1) @ v
        mu = query_landmarks + key_landmarks
        densities = _log_kernel(omega, mu)
        mixture = densities.logsumexp(dim=-1)
        # That |q|^2 is common to all landmarks, and cancels.
        scores = scale * (q @ omega.mT)
        if weighting == 'mis-opt':
            density = densities.diagonal(dim1=-2, dim2=-1)
            t = (scale * (q @ query_landmarks.mT)).softmax(dim=-2)
            share = (density - mixture).exp().unsqueeze(-2)
            a = share + alpha * (t - t.mean(dim=-1, keepdim=True))
            scores = scores + a.clamp(min=1e-8).log()
        else:
            density = mixture
            if weighting == 'mis-biased':
                scores = scores + scale * (q @ mu.mT)
        bias = of_keys.logsumexp(dim=-1) - density
        y = (scores + bias.unsqueeze(-2)).softmax(dim=-1) @ kv
    return y.transpose(-3, -2).to(dtype)


def _log_kernel(omega: Tensor, x: Tensor) -> Tensor:
    """xi of [*, C, D] and [*, L, D], [*, C, L]."""
    norm = x.square().sum(dim=-1).unsqueeze(-2)
    return x.shape[-1]**-0.5 * (omega @ x.mT - norm / 2)


def _check_landmarks(q: Tensor, *landmarks: Tensor) -> None:
    rest = {x.shape[:-3] + x.shape[-2:] for x in (q, *landmarks)}
    if len(rest) > 1 or len({x.shape[-3] for x in landmarks}) > 1:
        raise ValueError(
            'lara_attention takes query_landmarks, key_landmarks and omega '
            f'[*, C, G, D] for q {tuple(q.shape)}, got '
            f'{" and ".join(str(tuple(x.shape)) for x in landmarks)}')
