# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Export models to files that run without this package."""
from .export import TOLERANCE, export_program
from .formats import FORMATS, choose_format, load_program, read_metadata
from .programs import ClipProgram, StreamProgram, program_of
from .script import copy_script, script_settings

__all__ = [
    'FORMATS', 'TOLERANCE', 'ClipProgram', 'StreamProgram', 'choose_format',
    'copy_script', 'export_program', 'load_program', 'program_of',
    'read_metadata', 'script_settings'
]
