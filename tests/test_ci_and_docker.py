# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""The workflow of the code host, and the Docker image."""
import re
from pathlib import Path

import yaml

ROOT = Path(__file__).resolve().parent.parent
DOCKERFILE = ROOT / 'docker/Dockerfile'


def test_workflow_runs_the_commands_of_the_readme():
    text = (ROOT / '.github/workflows/ci.yml').read_text()
    jobs = yaml.safe_load(text)['jobs']
    commands = jobs['readme']['strategy']['matrix']['command']
    assert [step['run'] for step in jobs['readme']['steps']
            if 'run' in step] == ['${{ matrix.command }}']
    readme = (ROOT / 'README.md').read_text()
    documented = [line.partition('#')[0].strip()
                  for block in re.findall(r'```bash\n(.*?)```', readme, re.S)
                  for line in block.splitlines()]
    assert len(commands) == 2 and set(commands) <= set(documented)


def steps() -> list[tuple[str, str]]:
    """Return the instructions of the Dockerfile with their arguments."""
    text = re.sub(r'^#.*\n', '', DOCKERFILE.read_text(), flags=re.M)
    text = text.replace('\\\n', ' ')
    return [tuple(line.split(maxsplit=1)) for line in text.splitlines()
            if line.strip()]


def test_image_is_pinned_and_has_a_separate_user():
    done = steps()
    assert done[0] == ('FROM', 'debian:bookworm-slim')
    names = [name for name, _ in done]
    assert [x for name, x in done if name == 'USER'] == ['user']
    for i, (name, text) in enumerate(done):
        if name == 'RUN' and 'pip install' in text:
            assert '-c requirements/constraints.txt' in text
            assert names.index('USER') < i
        if name == 'COPY':
            _, source, _ = text.split()
            assert (ROOT / source).exists()
    assert done[-2:] == [('ENTRYPOINT', '["mmvidattn"]'),
                         ('CMD', '["--help"]')]
