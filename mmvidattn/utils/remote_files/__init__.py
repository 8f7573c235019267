# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Files in object stores and on the web: copy, cache and retry.

``fetch.py`` has the functions that other folders call, ``cache.py`` the
bounded folder of local copies, and ``backend.py`` lets mmengine's functions
read URLs.
"""
from .fetch import (
    RemoteError,
    exists,
    is_url,
    join_url,
    local_file,
    local_path,
    read_span,
    safe_name,
)

__all__ = ['RemoteError', 'exists', 'is_url', 'join_url', 'local_file',
           'local_path', 'read_span', 'safe_name']
