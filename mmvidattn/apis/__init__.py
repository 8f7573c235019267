# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
get_model = list_models = None
