# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Scope of bundles: mmengine looks up its types in the module registry."""
