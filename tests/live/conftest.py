# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
from live_fixtures import (  # noqa: F401
    broken_clip,
    camera,
    clip,
    clip_files,
    files,
    web,
)
