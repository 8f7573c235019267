# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
from urllib.parse import urlsplit


def without_secrets(url: str) -> str:
    """A URL without user, password and query; other text as it is."""
    parts = urlsplit(url)
    if not parts.netloc:
        return url
    return f'{parts.scheme}://{parts.netloc.rpartition("@")[2]}{parts.path}'
