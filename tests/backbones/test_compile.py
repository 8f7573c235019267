# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""All backbones under torch.compile: one graph for any batch size."""
import pytest
import torch
from backbones.families import OPTIONS, VARIANTS, build, clips_for
from registered import arguments_for
from torch._dynamo.testing import CompileCounterWithBackend

# torch selects another convolution for fewer than 16 images, so two clips need
# at least 16 frames; leap attention halves their number.
NUM_FRAMES = 16
QUICK = 'LinearVideoTransformer-default'
MODELS = [f'{backbone.__name__}-{next(iter(variants))}'
          for backbone, variants in OPTIONS.items()]
MODELS += ['LinearVideoTransformer-patches-of-3-frames',
           'LinearVideoTransformer-windowed', 'XViT-half-clips',
           'ViViT-encoder', 'ViViT-time-space-fixation', 'ViViT-dot',
           'DualFormer-padded']
# Models with custom backward code.
TRAINED = 'LinearVideoTransformer-patches-of-3-frames', 'DualFormer-padded'


@pytest.mark.parametrize('name, training', [
    pytest.param(name, training, marks=[] if name == QUICK else
                 [pytest.mark.slow])
    for name in MODELS for training in (False, True)
    if not training or name in TRAINED])
def test_one_graph_for_any_batch_size(name, training):
    """mark_dynamic fails if the graph depends on the number of clips."""
    backbone, options = VARIANTS[name]
    options = dict(options, num_frames=NUM_FRAMES,
                   **arguments_for(backbone, num_layers=1))
    model = build(backbone, **options).train(training)
    torch._dynamo.reset()
    counter = CompileCounterWithBackend('aot_eager' if training else 'eager')
    compiled = torch.compile(model, fullgraph=True, backend=counter)
    with torch.set_grad_enabled(training):
        for batch in 2, 5:
            clips = clips_for(model, batch, **options)
            torch._dynamo.mark_dynamic(clips, 0)
            y = compiled(clips)
            if training:
                y.square().mean().backward()
            else:
                torch.testing.assert_close(y, model(clips), rtol=1e-4,
                                           atol=1e-4)
    assert counter.frame_count == 1
