# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Files of a work directory."""
import json
import os
from pathlib import Path
from typing import Any

from mmengine.config import Config

from ..apis.models import get_model, load_config
from ..apis.release import SUFFIXES, save_release
from ..utils.checkpoint import find_resumable
from .options import FineTuneOptions

# File with the options of the run, written when the training begins.
NOTES = 'finetune.json'
BUNDLE = 'bundle'


def read_notes(out: Path) -> dict[str, Any]:
    """Read ``finetune.json`` of a work directory.

    Raises:
        ValueError: If the file was not written by ``mmvidattn finetune``.
    """
    try:
        notes = json.loads((out / NOTES).read_text('utf-8'))
        notes['options'] = {**FineTuneOptions.ADDED, **notes['options']}
        return notes
    except (ValueError, KeyError, TypeError):
        raise ValueError(f'{out / NOTES} was not written by mmvidattn '
                         'finetune: choose another --work-dir') from None


def load_run_config(out: Path, work_dir: Path) -> Config:
    """Load the config of a run, for another folder of logs."""
    cfg = load_config(out / 'config.py')
    cfg.work_dir = str(work_dir)
    cfg.console_log_level = 'WARNING'
    return cfg


def find_best(out: Path) -> Path:
    """Return the best checkpoint of the training, or else the last one."""
    best = sorted((out / 'run').glob('best_*.pth'),
                  key=lambda path: path.stat().st_mtime)
    checkpoint = best[-1] if best else find_resumable(out / 'run')[0]
    if checkpoint is None:
        raise ValueError(f'the training left no checkpoint in {out / "run"}')
    return checkpoint


def save_best(out: Path) -> Path:
    """Write ``best.pth`` and ``best.safetensors``, the weights alone.

    Returns:
        The checkpoint with these weights.
    """
    config, best = out / 'config.py', find_best(out)
    parts = {suffix: out / f'best{suffix}.part' for suffix in SUFFIXES}
    save_release(get_model(config, best), load_config(config), parts)
    for suffix, part in parts.items():
        os.replace(part, out / f'best{suffix}')
    return best
