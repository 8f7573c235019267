# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Write the targets of each step of a feature stream from annotations.

The same as ``mmvidattn targets``.
"""
from mmvidattn.cli.targets import main

if __name__ == '__main__':
    main()
