# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
from typing import Literal

from torch import Tensor, nn

from ..ops.feature_fixation import Aggregate, Gate, fixate
from ..utils.arguments import Count, check_arguments


@check_arguments
class FeatureFixation(nn.Module):
    """Reweights the channels of queries and keys before attention.

    Paper Secs. 4.1 and 4.2. The ratio comes from one linear map per head,
    whose weights all heads share.

    Differs from the paper: Eqs. 4 and 5 map all channels of the model at
    once, which is ``across_heads``; the released code, and the default, map
    those of each head.

    Args:
        head_dims: Width D of a head.
        mode: 'separate' (Eq. 4: Q and K each from themselves) or
            'cooperative' (Eq. 5: from several representations together).
        inputs: The representations that cooperate: 'qk' or 'qkv'. Separate
            fixation has 'qk' only.
        shared: Whether Q and K are reweighted by the same ratio, evaluated
            once. Separate fixation cannot share.
        aggregate: How the representations cooperate: 'concat', 'add', 'mul'.
        num_heads: Heads G.
        across_heads: Whether one map takes the channels of all heads, so that
            a channel's ratio depends on every other channel of its token.
    """

    def __init__(self,
                 head_dims: Count,
                 mode: Literal['separate', 'cooperative'] = 'cooperative',
                 inputs: Literal['qk', 'qkv'] | None = None,
                 shared: bool | None = None,
                 aggregate: Aggregate = 'concat',
                 num_heads: Count = 1,
                 across_heads: bool = False) -> None:
        super().__init__()
        separate = mode == 'separate'
        if inputs is None:
            inputs = 'qk' if separate else 'qkv'
        shared = not separate if shared is None else shared
        if separate and (inputs != 'qk' or shared or aggregate != 'concat'):
            raise ValueError(
                "separate fixation takes inputs='qk', shared=False and "
                "aggregate='concat': Q and K each have their own ratio "
                f'(got {inputs!r}, {shared} and {aggregate!r})')
        self.mode = mode
        self.inputs = inputs
        self.shared = shared
        self.aggregate = aggregate
        self.across_heads = across_heads
        num_inputs = len(inputs) if not separate and aggregate == 'concat' \
            else 1
        dims = num_heads * head_dims if across_heads else head_dims
        if shared:
            self.gate = nn.Linear(num_inputs * dims, dims)
        else:
            self.q_gate = nn.Linear(num_inputs * dims, dims)
            self.k_gate = nn.Linear(num_inputs * dims, dims)

    def forward(self, q: Tensor, k: Tensor,
                v: Tensor) -> tuple[Tensor, Tensor]:
        """Mapped queries and keys, and values, [*, G, D], to fixed Q and K."""
        if not self.across_heads:
            return fixate(q, k, v, self.as_gate())
        fixed = fixate(*(x.flatten(-2) for x in (q, k, v)), self.as_gate())
        return tuple(x.view(q.shape) for x in fixed)

    def as_gate(self) -> Gate:
        """Its parameters and options, for an op."""
        inputs = 'own' if self.mode == 'separate' else self.inputs
        if self.shared:
            return Gate(self.gate.weight, self.gate.bias, None, None, inputs,
                        self.aggregate)
        return Gate(self.q_gate.weight, self.q_gate.bias, self.k_gate.weight,
                    self.k_gate.bias, inputs, self.aggregate)

    def extra_repr(self) -> str:
        return (f'mode={self.mode!r}, inputs={self.inputs!r}, '
                f'shared={self.shared}, aggregate={self.aggregate!r}, '
                f'across_heads={self.across_heads}')
