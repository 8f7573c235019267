# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""The classes of this package in mmaction2's registries.

mmengine imports all classes of a package when one is first looked up.
:class:`LazyRegistry` imports only the class that is looked up.
"""
import importlib

from mmengine.registry import Registry

from .lazy import import_module_of

# For each registry, the packages with its classes.
PACKAGES = {
    'model': ('backbones', 'heads', 'layers', 'losses', 'online',
              'recognizers'),
    'dataset': ('datasets', ), 'data sampler': ('datasets', ),
    'transform': ('datasets.transforms', ),
    'hook': ('engine', ), 'runner': ('engine', ),
    'optimizer wrapper constructor': ('engine', ),
    'parameter scheduler': ('engine', ),
    'metric': ('evaluation', )}
# Names in configs of earlier versions.
OLD_NAMES = dict(
    CentredSampleFrames='CenteredSampleFrames',
    GuardedDataset='SkipUnreadable',
    GuardedVideoDataset='CheckedVideoDataset',
    NanGuardHook='SkipNanStepsHook',
    SafeCheckpointHook='AtomicCheckpointHook',
    SafeEpochBasedTrainLoop='EpochBasedTrainLoop',
    SafeIterBasedTrainLoop='IterBasedTrainLoop',
    SafeLoggerHook='TolerantLoggerHook',
    SafeRunner='VideoRunner',
    SafeValLoop='ValLoop')


class LazyRegistry(Registry):
    """Registry of mmaction2, with the classes of this package."""

    def get(self, key: str) -> type | None:
        # Let mmengine read URLs and safetensors.
        importlib.import_module('mmvidattn.utils.checkpoint')
        scope, _, name = str(key).rpartition('.')
        if name in OLD_NAMES:
            key = f'{scope}.{OLD_NAMES[name]}'.lstrip('.')
        return super().get(key)

    def names(self) -> list[str]:
        """Return the names of this package's classes."""
        return [name for package in _packages(self.name)
                for name in package.__all__]


class _Classes(dict):
    """Classes of a registry, which imports a class of this package for a name.

    A child of the registry reads this dict, too.
    """

    def __init__(self, registry: Registry) -> None:
        super().__init__(registry.module_dict)
        self._registry = registry.name

    def __contains__(self, name: object) -> bool:
        if not super().__contains__(name):
            for package in _packages(self._registry):
                import_module_of(package, name)
        return super().__contains__(name)


def extend_registries() -> None:
    """Let all registries of mmaction2 find the classes of this package."""
    from mmaction import registry
    for one in vars(registry).values():
        if isinstance(one, Registry) and one.scope == 'mmaction':
            one.__class__ = LazyRegistry
            one._module_dict = _Classes(one)


def import_all() -> None:
    """Import all classes, to list them."""
    for registry in PACKAGES:
        for package in _packages(registry):
            for name in package.__all__:
                getattr(package, name)


def _packages(registry: str) -> list:
    return [importlib.import_module(f'mmvidattn.{name}')
            for name in PACKAGES.get(registry, ())]
