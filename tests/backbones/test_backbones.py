# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Backbones compiled, transcribed, counted, and with attentions by layer."""
import json

import pytest
import torch
import torch.nn.functional as F
from backbones.families import OPTIONS, TINY, VARIANTS, build, clips_for
from helpers import relative
from mmaction.registry import MODELS
from mmengine.config import Config
from registered import arguments_for
from torch import nn
from torch._dynamo.testing import CompileCounterWithBackend
from torch.overrides import TorchFunctionMode

from mmvidattn import backbones
from mmvidattn.apis.complexity import count_complexity
from mmvidattn.heads import LAPSHead, ViViTHead
from mmvidattn.layers import BaseAttention
from mmvidattn.layers.temporal import FrameMixing
from tools.benchmark.references import linear_ff
from tools.benchmark.references.vivit import TranscribedViViT

# torch selects another convolution for fewer than 16 images, so two clips need
# at least 16 frames; leap attention halves their number.
NUM_FRAMES = 16
QUICK = 'LinearVideoTransformer-default'
COMPILED = [f'{backbone.__name__}-{next(iter(variants))}'
            for backbone, variants in OPTIONS.items()]
COMPILED += ['LinearVideoTransformer-patches-of-3-frames',
             'LinearVideoTransformer-windowed', 'XViT-half-clips',
             'ViViT-encoder', 'ViViT-time-space-fixation', 'ViViT-dot',
             'DualFormer-padded']
# Models with custom backward code.
TRAINED = 'LinearVideoTransformer-patches-of-3-frames', 'DualFormer-padded'


@pytest.mark.parametrize('name, training', [
    pytest.param(name, training, marks=[] if name == QUICK else
                 [pytest.mark.slow])
    for name in COMPILED for training in (False, True)
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


def linear_ff_of(model):
    return linear_ff.transcribe(
        model, num_frames=4, embed_dims=32, num_layers=2, num_heads=2,
        softmax=model.blocks[0].spatial_attn.fixation is None)


def vivit_of(model):
    network = TranscribedViViT(8, 32, 2, 32, 4).double()
    network.load_state_dict(model.state_dict())
    return network


# The denominators of linear attention differ by 1e-6.
TRANSCRIBED = {
    'linear_ff': (backbones.LinearVideoTransformer, {}, linear_ff_of, 1e-6),
    'linear_ff-softmax': (backbones.LinearVideoTransformer, dict(
        attention=dict(type='SoftmaxAttention'), fixation=None),
        linear_ff_of, 1e-6),
    'vivit': (backbones.ViViT, dict(img_size=32), vivit_of, 1e-10),
}


@pytest.mark.parametrize('backbone, options, transcribe, tolerance',
                         TRANSCRIBED.values(), ids=TRANSCRIBED)
def test_equals_its_transcription(backbone, options, transcribe, tolerance):
    model = build(backbone, **options).double().eval()
    for p in model.parameters():
        if p.dim() == 1 or backbone is backbones.LinearVideoTransformer:
            nn.init.normal_(p, std=0.3)
    reference = transcribe(model).double().eval()
    clips = clips_for(model, **options).double()
    with torch.no_grad():
        assert relative(model(clips), reference(clips)) < tolerance


SOFTMAX, LINEAR = dict(type='SoftmaxAttention'), dict(type='LinearAttention')
TEMPORAL = dict(model='fact_encoder', num_temporal_layers=2)
# Backbone, options, two attentions, and the number of layers.
BY_LAYER = {
    cls.__name__: (cls, {}, *(
        ('2d', 'leap') if cls is backbones.InflatedBackbone
        or 'pyramid' in arguments_for(cls, pyramid=1) else (SOFTMAX, LINEAR)))
    for cls in TINY
    if cls is backbones.InflatedBackbone or arguments_for(cls, attention=None)}
BY_LAYER['temporal encoder'] = backbones.ViViT, TEMPORAL, SOFTMAX, LINEAR


def kinds_of(model):
    """Return the attention of each layer."""
    kinds = [type(m).__name__ if isinstance(m, BaseAttention) else m.attention
             for m in model.modules()
             if isinstance(m, (BaseAttention, FrameMixing))]
    # A factorized layer has two attentions.
    return kinds[::1 + isinstance(model, backbones.LinearVideoTransformer)]


@pytest.mark.parametrize('backbone, options, first, second', BY_LAYER.values(),
                         ids=BY_LAYER)
def test_each_layer_has_its_attention(backbone, options, first, second):
    names = [x if isinstance(x, str) else x['type'] for x in (first, second)]
    number = len(kinds_of(build(backbone, **options)))
    for last in number - 1, str(number - 1):
        torch.manual_seed(0)
        model = build(backbone, attention=dict(
            layers={last: second}, rest=first), **options)
        assert kinds_of(model) == [names[0]] * (number - 1) + [names[1]]
    torch.manual_seed(0)
    same = build(backbone, attention=[first] * (number - 1) + [second],
                 **options)
    same.load_state_dict(model.state_dict())
    clips = clips_for(model, **options)
    with torch.no_grad():
        assert torch.equal(model.eval()(clips), same.eval()(clips))


def test_config_with_numbers_of_layers_survives_its_files():
    attention = dict(layers={0: SOFTMAX}, rest=LINEAR)
    cfg = Config(dict(model=dict(
        type='LinearVideoTransformer', attention=attention,
        **TINY[backbones.LinearVideoTransformer])))
    for again in (Config.fromstring(cfg.pretty_text, '.py').model,
                  json.loads(json.dumps(cfg.model))):
        model = MODELS.build(again)
        assert kinds_of(model) == ['SoftmaxAttention', 'LinearAttention']


# Model, options, parameters (millions) and operations (billions) in the
# papers, and the relative tolerance of the operations.
PUBLISHED = {
    **{f'vivit-{model}': (
        backbones.ViViT, dict(model=model), mparams, gmacs, 0.01)
       for model, mparams, gmacs in (
           ('joint', 88.95, 451.5), ('fact_encoder', 115.06, 283.3),
           ('fact_attention', 117.32, 371.1), ('fact_dot', 88.95, 276.2))},
    'visformer-laps': (backbones.Visformer, {}, 39.758, 40.136, 3e-4),
    'rest-s': (backbones.ResT, {}, 13.372, 17.628, 3e-4),
    'vit-laps': (backbones.VisionTransformerLAPS, {}, 86.106, 146.38, 3e-4)}


class _CountNorms(TorchFunctionMode):
    """Count norms like fvcore, which the papers used."""
    costs = {F.layer_norm: 5, F.batch_norm: 2, F.instance_norm: 4}
    total = 0

    def __torch_function__(self, function, types, args=(), kwargs=None):
        if function in self.costs:
            self.total += self.costs[function] * args[0].numel()
        return function(*args, **(kwargs or {}))


@pytest.mark.parametrize('backbone, options, mparams, gmacs, rel',
                         PUBLISHED.values(), ids=PUBLISHED)
def test_parameters_and_operations_match_the_paper(backbone, options, mparams,
                                                   gmacs, rel):
    with torch.device('meta'):
        model = backbone(**options).eval()
        is_vivit = backbone is backbones.ViViT
        norm = model.encoder.norm if is_vivit else model.norm
        head = (ViViTHead if is_vivit else LAPSHead)(400, norm.weight.numel())
        both = nn.Sequential(model, head)
        params = sum(p.numel() for p in both.parameters())
        digits = len(str(mparams).split('.')[1])
        assert round(params / 1e6, digits) == mparams
        clips, outputs = torch.empty(1, 3, model.num_frames, 224, 224), []
        model.register_forward_hook(lambda *args: outputs.append(args[-1]))
        with _CountNorms() as norms:
            operations = count_complexity(both, clips).macs + norms.total
    y, = outputs
    if y.dim() == 5:
        # Average pooling of a frame.
        operations += y.numel()
    assert operations / 1e9 == pytest.approx(gmacs, rel=rel)
