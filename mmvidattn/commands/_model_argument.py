# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Parse the model at the end of a command line, after the sources."""
import sys
from collections.abc import Sequence
from pathlib import Path

from ..apis.bundle_file import is_bundle
from ..apis.config import find_config, is_checkpoint, is_config
from ..apis.models import DEFAULT, DEFAULT_MODEL, DEFAULTS, find_default
from ..apis.published import PUBLISHED, list_published
from ..datasets.video_facts import VIDEO_SUFFIXES
from ..utils.printable import echo

EXPORTED = '.onnx', '.pt2'


def split_model(words: Sequence[str], with_sources: bool = True
                ) -> tuple[list[str], str, str | None]:
    """Split ``SOURCE ... [BUNDLE | CONFIG CHECKPOINT | PUBLISHED]``.

    PUBLISHED is a config with published weights. Without a model, the default
    model of the package is used, and a line on stderr reports this.

    Returns:
        Sources, config or bundle, and checkpoint. The checkpoint of a bundle
        is None.
    """
    for word in words:
        if Path(word).suffix in EXPORTED:
            raise ValueError(f'{word} is an exported model, which runs '
                             'without mmvidattn: use the script beside it, or '
                             'give the bundle, or the config and checkpoint')
    sources, *model = _split(words)
    for word in sources:
        if is_bundle(word):
            raise ValueError(f'{word} is a bundle, not a source: give it '
                             'after the sources')
    if with_sources != bool(sources):
        raise ValueError(
            f'expected a source before the model {model[0]}' if with_sources
            else 'expected only BUNDLE, or CONFIG CHECKPOINT, got '
            + ' '.join(words))
    return sources, *model


def _split(words: Sequence[str]) -> tuple[list[str], str, str | None]:
    *rest, last = words or ['']
    if is_bundle(last):
        return rest, last, None
    before = rest[-1] if rest else ''
    if last and is_bundle(Path(last, 'bundle')):
        raise ValueError(f'{last} is not a bundle; did you mean '
                         f'{Path(last, "bundle")}?')
    is_video = Path(before).suffix.lower() in VIDEO_SUFFIXES
    if before and (is_config(before) or is_checkpoint(before)
                   or last in (DEFAULT, PUBLISHED)
                   or is_checkpoint(last) and not is_video):
        # Fail before the sources are opened.
        find_config(before)
        return rest[:-1], before, last
    if is_checkpoint(last):
        raise ValueError(f'the checkpoint {last} needs a config before it, '
                         f'got {before or "nothing"}')
    if last in list_published() and is_config(last):
        return rest, last, PUBLISHED
    if is_config(last):
        raise ValueError(
            f'the config {last} needs a checkpoint after it'
            + (f', such as {DEFAULT!r} for the weights that come with the '
               'package' if is_bundle(DEFAULTS / find_config(last).stem)
               else ''))
    for word in words:
        path = Path(word)
        if not (path.exists() or word.isdecimal() or '://' in word):
            if path.suffix or len(path.parts) > 1:
                raise FileNotFoundError(f'{word} does not exist: expected a '
                                        'video, a bundle or a config')
            try:
                find_config(word)
            except ValueError as error:
                raise ValueError(f'no file {word}, and {error}') from None
    echo(f'note: no model was given. Using {DEFAULT_MODEL}, which recognizes '
         'eight motions of drawn shapes; choose another model with BUNDLE, or '
         'with CONFIG CHECKPOINT', file=sys.stderr)
    return list(words), str(find_default(DEFAULT_MODEL)), None
