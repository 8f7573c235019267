# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""The workflow of the code host, and the Docker image."""
import json
import os
import re
import shlex
import shutil
import subprocess
from pathlib import Path

import pytest
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


class Root:
    """Folder in which the Dockerfile's steps run."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.user = 'root'
        self.place = '/'
        self.env = dict(PATH='/usr/local/sbin:/usr/local/bin:/usr/sbin:'
                             '/usr/bin:/sbin:/bin', HOME='/root')

    def run(self, command: str, **env: str) -> str:
        done = subprocess.run(
            ['chroot', f'--userspec={self.user}', self.folder, '/bin/sh',
             '-c', f'cd {self.place} && {command}'],
            env={**self.env, **env}, capture_output=True, text=True)
        assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
        return done.stdout

    def follow(self, name: str, text: str, **env: str) -> None:
        """Run a step; ``env`` is only set for commands."""
        if name == 'RUN':
            self.run(text, **env)
        elif name in ('ENV', 'ARG'):
            key, _, value = text.partition('=')
            self.env[key] = re.sub(
                r'\$(\w+)', lambda match: self.env[match[1]], value)
        elif name == 'USER':
            self.user, self.env['HOME'] = text, f'/home/{text}'
        elif name == 'WORKDIR':
            self.place = text
            (self.folder / text[1:]).mkdir(exist_ok=True)
        elif name == 'COPY':
            _, source, out = text.split()
            shutil.copytree(
                ROOT / source, self.folder / self.place[1:] / out,
                dirs_exist_ok=True, ignore=shutil.ignore_patterns(
                    '.*', '__pycache__', '*.egg-info', 'work_dirs'))
            subprocess.run(['chroot', self.folder, 'chown', '-R', self.user,
                            self.place], check=True)


@pytest.mark.slow
def test_steps_of_the_image_install_a_working_command(tmp_path):
    """Run Docker's steps in a chroot of Debian, the base of the image."""
    if os.getuid() or not shutil.which('debootstrap'):
        pytest.skip('needs root and debootstrap')
    folder = tmp_path / 'root'
    subprocess.run(['debootstrap', '--variant=minbase', 'bookworm', folder],
                   check=True, capture_output=True)
    # What Docker gives a container: names of hosts; here also this machine's
    # certificates and settings of pip.
    shutil.copy('/etc/resolv.conf', folder / 'etc')
    extra = {}
    certificates = Path('/etc/ssl/certs/ca-certificates.crt')
    if certificates.exists():
        shutil.copy(certificates, folder / 'etc/host.crt')
        extra['PIP_CERT'] = '/etc/host.crt'
    root = Root(folder)
    mounts = [('proc', 'proc')]
    links = os.environ.get('PIP_FIND_LINKS')
    if links and Path(links).is_dir():
        mounts.append(('--bind', links))
        extra['PIP_FIND_LINKS'] = links
    try:
        for kind, place in mounts:
            target = folder / place.lstrip('/')
            target.mkdir(parents=True, exist_ok=True)
            subprocess.run(['mount', *(('-t', 'proc', 'proc') if kind == 'proc'
                                       else (kind, place)), target],
                           check=True)
        (folder / 'dev/shm').mkdir(exist_ok=True)
        for name, text in steps():
            if name not in ('FROM', 'ENTRYPOINT', 'CMD'):
                root.follow(name, text, **extra)
        words = json.loads(dict(steps())['ENTRYPOINT'])
        assert root.run('id -un').strip() == 'user'
        assert 'Train a model.' in root.run(shlex.join([*words, '--help']))
        report = json.loads(root.run(shlex.join(
            [*words, 'doctor', '--quick', '--json'])))
        assert report['ok'], report['findings']
    finally:
        for _, place in mounts:
            subprocess.run(['umount', folder / place.lstrip('/')])
