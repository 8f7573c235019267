# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
from . import main

main()
