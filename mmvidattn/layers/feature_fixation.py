# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
from typing import Any, Literal

from torch import Tensor, nn

from ..ops.feature_fixation import Aggregate, fixation_ratio
from ..ops.fused_feature_fixation import Gate
from ..utils.arguments import Count, check_arguments

Mode = Literal['separate', 'cooperative']
Inputs = Literal['qk', 'qkv']


@check_arguments
class FeatureFixation(nn.Module):
    """Gate that reweights the channels of queries and keys before attention.

    This is the feature fixation of `Linear Video Transformer with Feature
    Fixation <https://arxiv.org/abs/2210.08164>`_, Secs. 4.1 and 4.2. Each
    channel of a query or key is multiplied by a ratio between 0 and 1, which a
    linear map and a sigmoid compute (``ops/feature_fixation.py``); all heads
    share the weights of the map.

    Differs from the paper: Eqs. 4 and 5 map all channels of the model at
    once (``across_heads=True``). The released code maps the channels of each
    head, which is the default.

    Args:
        head_dims: Width D of a head.
        mode: 'separate' (Eq. 4: the ratio of Q comes from Q, the ratio of K
            from K) or 'cooperative' (Eq. 5: ratios come from ``inputs``).
            Defaults to 'cooperative'.
        inputs: Inputs of cooperative fixation, 'qk' or 'qkv'. Separate
            fixation accepts only 'qk'. Defaults to 'qkv' for cooperative
            fixation.
        shared: Use one ratio for both Q and K. Separate fixation accepts
            only False. Defaults to True for cooperative fixation.
        aggregate: Combination of the inputs: 'concat', 'add' or 'mul'.
            Separate fixation accepts only 'concat'. Defaults to 'concat'.
        num_heads: Number of heads G. Defaults to 1.
        across_heads: Use one map for the channels of all heads, so that the
            ratio of a channel depends on every channel of its token.
            Defaults to False.
        feature_dims: Width F of a mapped query or key. If it is not D, values
            can only be concatenated. Defaults to D.
    """

    def __init__(self,
                 head_dims: Count,
                 mode: Mode = 'cooperative',
                 inputs: Inputs | None = None,
                 shared: bool | None = None,
                 aggregate: Aggregate = 'concat',
                 num_heads: Count = 1,
                 across_heads: bool = False,
                 feature_dims: Count | None = None) -> None:
        super().__init__()
        separate = mode == 'separate'
        if inputs is None:
            inputs = 'qk' if separate else 'qkv'
        shared = not separate if shared is None else shared
        if separate and (inputs != 'qk' or shared or aggregate != 'concat'):
            raise ValueError(
                "mode='separate' requires inputs='qk', shared=False and "
                f"aggregate='concat', got inputs={inputs!r}, shared={shared} "
                f'and aggregate={aggregate!r}')
        self.mode = mode
        self.inputs = inputs
        self.shared = shared
        self.aggregate = aggregate
        self.across_heads = across_heads
        out_dims = head_dims if feature_dims is None else feature_dims
        in_dims = out_dims
        if not separate and aggregate == 'concat':
            in_dims = 2 * out_dims + head_dims * (inputs == 'qkv')
        elif inputs == 'qkv' and out_dims != head_dims:
            raise ValueError(
                f"aggregate={aggregate!r} of 'qkv' requires features of "
                f'head_dims={head_dims} channels, got {out_dims}')
        heads = num_heads if across_heads else 1
        for name in ['gate'] if shared else ['q_gate', 'k_gate']:
            self.add_module(name, nn.Linear(heads * in_dims, heads * out_dims))

    def forward(self, q: Tensor, k: Tensor,
                v: Tensor) -> tuple[Tensor, Tensor]:
        """Reweight mapped q and k, [*, G, F] each; v is [*, G, D]."""
        if not self.across_heads:
            return self._reweight(q, k, v)
        fixed = self._reweight(*(x.flatten(-2) for x in (q, k, v)))
        return tuple(x.view(q.shape) for x in fixed)

    def gates(self) -> dict[str, Any]:
        """Return the gates of ``ops.fused_feature_fixation.Options``
        and their ``weights``."""
        maps = self._maps()
        return dict(
            weights=[x for _, gate in maps for x in (gate.weight, gate.bias)],
            **{f'{x}_gate': Gate(names, self.aggregate)
               for x, (names, _) in zip('qk', maps)})

    def _maps(self) -> list[tuple[str, nn.Linear]]:
        """Return inputs and map of the one gate, or of both gates."""
        if self.shared:
            return [(self.inputs, self.gate)]
        names = 'qk' if self.mode == 'separate' else [self.inputs] * 2
        return list(zip(names, (self.q_gate, self.k_gate)))

    def _reweight(self, q: Tensor, k: Tensor,
                  v: Tensor) -> tuple[Tensor, Tensor]:
        # Features can be wider than the dtype of the model.
        inputs = {name: x.to(v.dtype) for name, x in zip('qkv', (q, k, v))}
        ratios = [
            fixation_ratio(tuple(inputs[name] for name in names), gate.weight,
                           gate.bias, self.aggregate)
            for names, gate in self._maps()]
        return q * ratios[0], k * ratios[-1]

    def extra_repr(self) -> str:
        return (f'mode={self.mode!r}, inputs={self.inputs!r}, '
                f'shared={self.shared}, aggregate={self.aggregate!r}, '
                f'across_heads={self.across_heads}')
