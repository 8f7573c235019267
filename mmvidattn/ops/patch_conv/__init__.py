# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
from .naive import naive_patch_conv
from .patch_conv import fit_patches, patch_conv

__all__ = ['fit_patches', 'naive_patch_conv', 'patch_conv']
