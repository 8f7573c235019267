# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Write the recipe tables of the pages, and model-index.yml.

The same as ``mmvidattn recipes``.
"""
from mmvidattn.cli.recipes import main

if __name__ == '__main__':
    main()
