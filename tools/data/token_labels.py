# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Write a teacher's labels for all tokens of the training clips.

The same as ``mmvidattn token-labels``.
"""
from mmvidattn.cli.token_labels import main

if __name__ == '__main__':
    main()
