# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Draw the scores of each frame of a video (Fig. 4 of LAPS).

The same as ``mmvidattn frame-scores``.
"""
from mmvidattn.cli.frame_scores import main

if __name__ == '__main__':
    main()
