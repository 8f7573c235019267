# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Removed commands and options, each with its replacement."""
from collections.abc import Sequence

# A commit that has all of them.
LAST = '1ec24a0'

COMMANDS: dict[str, str] = {
    'attention-map': 'use tools/analysis/attention_map.py',
    'frame-scores': 'use tools/analysis/frame_scores.py',
    'grad-cam': 'use tools/analysis/grad_cam.py',
    'feature-cache': 'finetune --freeze computes the features of each clip '
                     'once',
    'token-labels': 'train with the teacher itself '
                    '(dualformer_tiny_tl_k400)',
    'label-next': 'use predict --segments and a labeling tool',
    'memory': 'the table in docs/scale.md',
    'review': 'use predict --segments and a labeling tool',
    'check-features': 'mmvidattn train or test, whose data sets report the '
                      'first faulty file',
    'compat': 'the table in docs/workarounds.md',
    'publish': 'tools/publish_model.py',
    'recipes': 'the tables in configs/<family>/recipes.md',
    'upstream': "import mmvidattn before mmaction2's program, see "
                'docs/tutorials/from_mmaction2.md',
    'weights': 'the table in configs/start_weights.md',
    'tune': 'nothing; each operation has one implementation',
}

# By command and option.
OPTIONS: dict[tuple[str, str], str] = {
    **{('test', option): 'mmvidattn predict VIDEOS ... --out FOLDER'
       for option in ('--show', '--show-dir', '--interval', '--wait-time')},
    ('train', '--amp force'): 'set MMVIDATTN_BFLOAT16=force, with --amp',
    **{('finetune', option): '--freeze computes the features of each clip once'
       for option in ('--cache-features', '--variants')},
    **{('finetune', option): 'give finetune several annotation files'
       for option in ('--add', '--continue')},
    ('stream', '--marks'): 'correct events in a labeling tool',
    ('stream', '--compile'): 'nothing; sources are scored in batches',
    ('stream', '--duration'): 'timeout SECONDS mmvidattn stream ...',
    ('stream', '--mqtt'): '--webhook',
    ('stream', '--truth'): '--plot without it, or mmvidattn score',
    ('stream', '--state-seconds'): 'nothing; it is 10',
    ('stream', '--segment-mb'): 'nothing; it is 64',
    ('stream', '--max-clients'): 'nothing; it is 8',
    ('doctor', '--quick'): 'mmvidattn doctor, which has no self-test',
    ('doctor', '--time-limit'): 'mmvidattn doctor without it',
    **{(command, option): 'use --engine ray, or split the list of videos'
       for command in ('extract-features', 'predict', 'check-videos')
       for option in ('--shard-size', '--shard', '--lease')},
    ('check-videos', '--engine'): 'use --workers',
    ('extract-features', '--store'): 'read the .npy files',
    ('targets', '--split'): 'use mmvidattn prepare for published data sets',
}


def refuse_removed(command: str, arguments: Sequence[str]) -> None:
    """Exit with one line if a command or one of its options was removed.

    Raises:
        SystemExit: If it was.
    """
    line = f' {" ".join(arguments)} '.replace('=', ' ')
    found = {command: COMMANDS[command]} if command in COMMANDS else {}
    found.update({
        f'{command} {option}': instead
        for (name, option), instead in OPTIONS.items()
        if name == command and f' {option} ' in line})
    for name, instead in found.items():
        raise SystemExit(
            f'mmvidattn: error: {name} was removed; commit {LAST} has it. '
            f'Instead: {instead}')
