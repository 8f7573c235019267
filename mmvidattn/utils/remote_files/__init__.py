# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Files in object stores and on the web: copy, cache and retry.

``fetch.py`` has the functions that other folders call, ``cache.py`` the
bounded folder of local copies, and ``backend.py`` lets mmengine's functions
read URLs.
"""
from . import backend  # noqa: F401
from .cache import HeldFile
from .fetch import (
    STORES,
    RemoteError,
    derived_content,
    exists,
    is_url,
    join_url,
    local_file,
    local_path,
    read_span,
    read_with,
    safe_name,
)

__all__ = ['HeldFile', 'RemoteError', 'STORES', 'derived_content', 'exists',
           'is_url', 'join_url', 'local_file', 'local_path', 'read_span',
           'read_with', 'safe_name']
