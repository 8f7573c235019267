# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
import resource

import pytest
import torch
from mmengine.config import Config

from mmvidattn.apis import release
from mmvidattn.utils.exits import one_line_errors


@pytest.mark.parametrize('first', ['.pth', '.safetensors'])
def test_full_disk_is_one_line(tmp_path, monkeypatch, first):
    """A limit on the file size fails like a full disk."""
    model = torch.nn.Linear(400, 400)
    model.dataset_meta = dict(classes=['a', 'b'])
    if first == '.safetensors':
        monkeypatch.setattr(torch, 'save', lambda *args: None)
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, limits[1]))
    try:
        with pytest.raises(SystemExit, match='error: cannot write .*a.pth and '
                           '.*a.safetensors: ') as stop, one_line_errors():
            release.save_release(model, Config(), {
                suffix: tmp_path / f'a{suffix}'
                for suffix in release.SUFFIXES})
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert len(str(stop.value).splitlines()) == 1
    assert not [*tmp_path.iterdir()]
