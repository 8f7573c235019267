# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.


def register_all_modules(init_default_scope: bool = True) -> None:
    """Set the default scope, for ``mmengine.hub`` and mim.

    Importing the package has registered everything already.

    Args:
        init_default_scope: Look types up as mmaction2 does.
    """
    if init_default_scope:
        from mmengine.registry import init_default_scope as init_scope
        init_scope('mmaction')
