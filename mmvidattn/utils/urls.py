# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
from urllib.parse import urlsplit


def without_secrets(url: str) -> str:
    """Remove user, password and query from a URL; other text is unchanged."""
    parts = urlsplit(url)
    if not parts.netloc:
        return url
    return f'{parts.scheme}://{parts.netloc.rpartition("@")[2]}{parts.path}'
