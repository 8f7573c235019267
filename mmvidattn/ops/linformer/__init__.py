# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
from .linformer import linformer_attention
from .naive import naive_linformer_attention

__all__ = ['linformer_attention', 'naive_linformer_attention']
