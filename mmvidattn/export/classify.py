"""Classify with the file beside this script: python MODEL_onnx.py VIDEO ..."""
import base64
import json
import sys
import zlib
from pathlib import Path

import av
import cv2
import numpy as np


def choose_frames(n, s):
    data = zlib.decompress(base64.b64decode(s['frames']))
    table = np.frombuffer(data, '<i2').reshape(s['max_frames'], -1).cumsum(0)
    if not 0 < n <= len(table):
        raise ValueError(f'{n} frames, expected 1 to {len(table)}')
    return table[n - 1]


def make_clips(frames, s):
    (h, w), (height, width) = frames[0].shape[:2], s['crop']
    f = min(s['short'] / min(h, w), (s['long'] or np.inf) / max(h, w))
    size = s['size'] or [int(w * f + 0.5), int(h * f + 0.5)]
    frames = np.stack([cv2.resize(frame, size) for frame in frames])
    h, w = frames.shape[1:3]
    x, y = ((0, k // 2, k // 2 * 2, k) for k in (w - width, h - height))
    x = np.stack([frames[:, y[j]:y[j] + height, x[i]:x[i] + width]
                  for i, j in s['corners'][w >= h]])
    x = x.reshape(-1, s['clip_len'], height, width, 3)[..., s['channels']]
    x = (x - np.float32(s['mean'])) / np.float32(s['std'])
    return np.ascontiguousarray(x.transpose(0, 4, 1, 2, 3), s['dtype'])


if __name__ == '__main__':
    name, _, kind = Path(__file__).stem.rpartition('_')
    file = Path(__file__).with_name(f'{name}.{kind}')
    if not file.exists():
        sys.exit(f'{file} is missing: keep it beside this script')
    if kind == 'onnx':
        import onnxruntime
        session = onnxruntime.InferenceSession(file)
        texts = session.get_modelmeta().custom_metadata_map
        labels, s = json.loads(texts['classes']), json.loads(texts['script'])
    else:
        import torch
        texts = dict(mmvidattn_classes='', mmvidattn_script='')
        program = torch.export.load(file, extra_files=texts).module()
        labels, s = map(json.loads, [*texts.values()][:2])
    bad = []
    for path in sys.argv[1:] or sys.exit(__doc__):
        try:
            n = sum(1 for _ in av.open(path).decode(video=0))
            chosen = choose_frames(n, s)
            found = {
                i: np.rot90(x.to_ndarray(format='rgb24'), x.rotation // 90)
                for i, x in enumerate(av.open(path).decode(video=0))
                if i in chosen}
            clips = make_clips([found[i].copy() for i in chosen], s)
        except (av.FFmpegError, LookupError, ValueError) as error:
            bad.append(f'not classified: {path} ({error})')
            continue
        y = session.run(None, dict(clips=clips))[0] if kind == 'onnx' else (
            program(torch.tensor(clips, device=s['device']))[0].tolist())
        y = np.log(y) if s['log'] else np.array(y)
        y = y.mean(0, keepdims=True) if s['mean_first'] else y
        y = np.exp(y - y.max(-1, keepdims=True))
        p = (y / y.sum(-1, keepdims=True)).mean(0)
        for i in p.argsort()[::-1][:5]:
            print(path, f'{p[i]:.5f}', labels[i] if labels else f'class {i}')
    sys.exit('\n'.join(bad) or None)
