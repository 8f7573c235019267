# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
from .depthwise_conv import depthwise_conv
from .naive import naive_depthwise_conv

__all__ = ['depthwise_conv', 'naive_depthwise_conv']
