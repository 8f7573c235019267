# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Registries that know only what a bundle may contain.

mmengine's registries import any dotted name. While the model or a pipeline of
a bundle is built, these registries replace all of them, also for the classes
that mmaction2 and mmcv build inside.
"""
from collections.abc import Iterator
from contextlib import contextmanager

import mmengine.registry
from mmaction.registry import MODELS, TRANSFORMS
from mmengine.config import Config
from mmengine.registry import DefaultScope, Registry

from . import find_class

# mmengine imports the module `registry` of a scope.
SCOPE = __package__


class BundleConfig(Config):
    """Config of a bundle."""


class BundleRegistry(Registry):
    """Registry of the classes of one kind that a bundle may contain."""

    def get(self, key: str) -> type:
        """Return a class by its name.

        Raises:
            ValueError: If a bundle may not contain it.
        """
        sources = dict(model=MODELS, transform=TRANSFORMS)
        found = self.name in sources and find_class(sources[self.name], key)
        if not found:
            raise ValueError(f'a bundle may not contain the {self.name} '
                             f'{key!r}')
        return found


REGISTRIES = [
    BundleRegistry(registry.name, parent=registry, scope=SCOPE)
    for registry in {id(one): one for one in vars(
        mmengine.registry).values() if isinstance(one, Registry)}.values()]


@contextmanager
def types_of(cfg: Config) -> Iterator[None]:
    """Look up types as a config may: those of a bundle are restricted.

    Args:
        cfg: Config whose parts are built in the ``with`` block.
    """
    scope = SCOPE if isinstance(cfg, BundleConfig) else cfg.get(
        'default_scope', 'mmaction')
    with DefaultScope.overwrite_default_scope(scope):
        yield
