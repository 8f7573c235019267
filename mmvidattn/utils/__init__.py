# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.


def register_all_modules(init_default_scope: bool = True) -> None:
    """Set the default scope; ``mmengine.hub`` and mim call this function.

    Importing the package has already extended the registries.

    Args:
        init_default_scope: Look up types in the scope of mmaction2. Defaults
            to True.
    """
    if init_default_scope:
        from mmengine.registry import init_default_scope as init_scope
        init_scope('mmaction')
