# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
from torch import Tensor, nn

from ..utils.modules import State


class BaseAttention(nn.Module):
    """Base class of attentions for :class:`VideoSelfAttention`.

    :class:`VideoSelfAttention` computes the projections to queries, keys and
    values. Register a subclass in MODELS; a config then selects it by name
    (``attention=dict(type=NAME)``). :class:`VideoSelfAttention` passes the
    first three arguments; a config sets all other arguments.

    Args:
        head_dims: Width D of a head.
        num_heads: Number of heads G.
        seq_shape: Axes of a sequence in the model: (T, ) in time, (H, W) in
            space, (T, H, W) for clips. It determines the size of tables; an
            attention without tables accepts sequences of any shape.

    Attributes:
        feature_dims: Width F of a mapped query or key. Defaults to D.
        takes_shapes: True if :meth:`forward` also takes the axes of the
            sequences.
        is_causal: True if the attention has :meth:`forward_causal`, for the
            pattern 'causal'.
    """
    takes_shapes = False
    is_causal = False

    def __init__(self, head_dims: int, num_heads: int,
                 seq_shape: tuple[int, ...]) -> None:
        super().__init__()
        self.head_dims = self.feature_dims = head_dims
        self.num_heads = num_heads
        self.seq_shape = tuple(seq_shape)

    def feature_map(self, x: Tensor) -> Tensor:
        """Map queries or keys [*, G, D] to [*, G, F].

        Called before feature fixation, which reweights the F channels.
        """
        return x

    def key_map(self, k: Tensor, token_axes: tuple[int, ...]) -> Tensor:
        """Map keys. Defaults to :meth:`feature_map`.

        Args:
            k: [*, G, D].
            token_axes: Axes of the keys that a query attends to, for maps that
                compare keys.
        """
        return self.feature_map(k)

    def forward(self, q: Tensor, k: Tensor, v: Tensor,
                *shapes: tuple[int, ...]) -> Tensor:
        """Attend with queries and keys after feature map and fixation.

        Args:
            q: [*, N, G, F].
            k: [*, M, G, F].
            v: [*, M, G, D].
            *shapes: With ``takes_shapes``, the axes of the N queries and of
                the M keys, in row-major order.

        Returns:
            [*, N, G, D].
        """
        raise NotImplementedError(f'{type(self).__name__} lacks forward')

    def forward_causal(self, q: Tensor, k: Tensor, v: Tensor,
                       decay: Tensor | None, state: State,
                       elapsed: Tensor | None) -> tuple[Tensor, State]:
        """Attend to the tokens of the same and of previous frames.

        Args:
            q: Queries of the next T >= 1 frames of streams, [B, T, N, G, D].
            k: [B, T, N, G, D].
            v: [B, T, N, G, D].
            decay: Rate of each head, [G], see
                :class:`mmvidattn.layers.FrameDecay`; or None.
            state: State of :meth:`initial_state` or of the previous call.
            elapsed: Time since the previous frame in nominal intervals,
                [B, T]. Defaults to 1.

        Returns:
            [B, T, N, G, D], and the new state: tensors of the same names and
            shapes.
        """
        raise NotImplementedError

    def initial_state(self, v: Tensor) -> State:
        """Return the state for values [B, T, N, G, D] of any T."""
        raise NotImplementedError

    def decay_state(self, state: State, decay: Tensor | None,
                    elapsed: Tensor) -> State:
        """Return the state after ``elapsed`` nominal intervals, [B].

        ``decay`` is the rate of each head, [G], or None.
        """
        raise NotImplementedError

    def extra_repr(self) -> str:
        """List all options."""
        return ', '.join(
            f'{name}={value!r}' for name, value in vars(self).items()
            if name != 'training' and not name.startswith('_'))
