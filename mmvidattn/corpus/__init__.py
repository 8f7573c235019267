# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Long lists of videos, processed in shards by many processes or machines."""
