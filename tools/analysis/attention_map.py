# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Draw attention matrices, and attention over a video (Fig. 2).

The same as ``mmvidattn attention-map``.
"""
from mmvidattn.cli.attention_map import main

if __name__ == '__main__':
    main()
