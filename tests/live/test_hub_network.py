# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Networks of transformers from a stand-in of the Hub's cache."""
import json

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file

from mmvidattn.live import FeatureExtractor

transformers = pytest.importorskip('transformers')
COMMIT = '0123456789' * 4
NAME = f'hf://owner/model@{COMMIT}'
SIZES = dict(hidden_size=48, num_attention_heads=2, num_hidden_layers=1)
# A network, the name and contents of its processor's config, and the name of
# its argument.
NETWORKS = {
    'V-JEPA 2': (
        lambda: transformers.VJEPA2Model(transformers.VJEPA2Config(
            **SIZES, crop_size=32, frames_per_clip=4, pred_hidden_size=24,
            pred_num_attention_heads=2, pred_num_hidden_layers=1)),
        'video_preprocessor_config.json', dict(
            size=dict(shortest_edge=40), crop_size=dict(height=32, width=32),
            do_center_crop=True, image_mean=[.5, .4, .3],
            image_std=[.2, .3, .4], rescale_factor=1 / 255, resample=2),
        'pixel_values_videos'),
    'VideoMAE': (
        lambda: transformers.VideoMAEModel(transformers.VideoMAEConfig(
            **SIZES, image_size=32, num_frames=4, intermediate_size=64)),
        'preprocessor_config.json', dict(
            size=dict(height=32, width=32), image_mean=[.5, .4, .3],
            image_std=[.2, .3, .4], resample=3), 'pixel_values'),
}


@pytest.fixture(params=NETWORKS)
def network(request, tmp_path, monkeypatch):
    """Put a network into the cache; return it, its folder and argument."""
    from huggingface_hub import constants
    monkeypatch.setattr(constants, 'HF_HUB_CACHE', str(tmp_path))
    monkeypatch.setattr(constants, 'HF_HUB_OFFLINE', True)
    make, file, processor, argument = NETWORKS[request.param]
    torch.manual_seed(0)
    model = make().eval()
    folder = tmp_path / 'models--owner--model/snapshots' / COMMIT
    model.save_pretrained(folder)
    (folder / file).write_text(json.dumps(processor))
    return model, folder, argument


def images():
    rng = np.random.default_rng(0)
    return [rng.integers(0, 256, (32, 32, 3)).astype(np.uint8)
            for _ in range(4)]


def test_uses_input_and_argument_of_the_processor(network):
    model, folder, argument = network
    extractor = FeatureExtractor(NAME)
    assert (extractor.clip_len, extractor.name) == (4, NAME)
    if argument == 'pixel_values_videos':
        # 32 x 32 images are resized to 40, and cropped to 32.
        assert extractor._network.prepare.resize == 40
        extractor = FeatureExtractor(NAME, input=dict(resize=32))
    clip = images()
    x = torch.from_numpy(np.stack(clip)).permute(0, 3, 1, 2)[None] / 255
    mean, std = (torch.tensor(values).view(3, 1, 1)
                 for values in ([.5, .4, .3], [.2, .3, .4]))
    with torch.no_grad():
        want = model(**{argument: (x - mean) / std}).last_hidden_state.mean(1)
    torch.testing.assert_close(extractor.features([clip, clip]),
                               want.expand(2, -1), atol=1e-5, rtol=1e-5)


def test_missing_weights_and_revisions_are_refused(network):
    _, folder, _ = network
    path = folder / 'model.safetensors'
    tensors = load_file(path)
    removed = next(name for name in tensors if name.endswith('query.weight'))
    del tensors[removed]
    save_file(tensors, path, metadata=dict(format='pt'))
    with pytest.raises(ValueError, match='lacks 1 tensors .*query.weight'):
        FeatureExtractor(NAME)
    with pytest.raises(ValueError, match='must be hf://OWNER/MODEL@REVISION'):
        FeatureExtractor('hf://owner/model@main')
