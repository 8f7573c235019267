# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Draw Grad-CAM heat maps (DualFormer's Fig. 6).

The same as ``mmvidattn grad-cam``.
"""
from mmvidattn.cli.grad_cam import main

if __name__ == '__main__':
    main()
