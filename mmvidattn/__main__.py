# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""``python -m mmvidattn``: the same as the command ``mmvidattn``."""
from mmvidattn.commands import main

if __name__ == '__main__':
    main()
