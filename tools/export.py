# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Export a model to torch.export or ONNX.

The same as ``mmvidattn export``.
"""
import sys

from mmvidattn.commands import main

if __name__ == '__main__':
    main(['export', *sys.argv[1:]])
