# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Runner of the commands and the Python code in the documentation.

Fenced blocks of ``bash`` or ``python`` in README.md and docs/ run in the order
of their page: Python in one namespace, commands one by one, all in one folder
with configs, tools and a small data/motion. A comment above a block changes
this:

    <!-- test: parse -->        too slow to run: parse commands with the
                                parsers of their programs, check that configs
                                exist, compile Python, and check its imports
                                of mmvidattn
    <!-- test: file NAME -->    write the block to a file for later blocks
    <!-- test: config NAME -->  part of a config that inherits from NAME:
                                read it and build its model

Blocks of other pages are only parsed, except below ``<!-- test: run -->``.
Endless commands (``--serve``, ``rtsp://``) are parsed on any page, and so are
exports, which other tests run.

Names in capitals stand for files: see ``Scratch.fill``.
"""
import argparse
import ast
import importlib
import re
import shlex
import shutil
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from helpers import ROOT, run_program
from mmaction.registry import MODELS
from mmengine.registry import init_default_scope

import mmvidattn
from mmvidattn.apis import find_config, load_config
from mmvidattn.apis.config import is_checkpoint
from mmvidattn.commands import find_commands

RULE = re.compile(r'<!-- test: (run|parse|file|config) ?(\S*) -->')
FENCE = re.compile(r'(?P<indent> *)```(?P<language>\w*)')
COMMAND = re.compile(r'^ {4}(python|bash|mmvidattn) ')
LAUNCHER = re.compile(r'tools/(dist|slurm)_(train|test)\.sh')
SHELLS = 'bash', 'sh', 'shell'
# Arguments added to commands, to make them fast. `indices` is a number of
# videos.
SMALLER = {
    'tools/data/motion/make_motion.py': '--train 16 --val 8 --seed 0',
    'train': '--cfg-options train_dataloader.num_workers=0 '
             'train_dataloader.persistent_workers=False '
             'val_dataloader.num_workers=0 '
             'val_dataloader.persistent_workers=False',
    'test': '--cfg-options test_dataloader.num_workers=0 '
            'test_dataloader.persistent_workers=False',
    'finetune': '--workers 0 --quick --batch-size 1 --epochs 1',
    'finetune --stream': '--workers 0 --quick --model pixels --epochs 30',
    'tools/data/online/make_events.py':
    '--videos 5 --seconds 120 --contrast 1',
}
SMALLER |= {
    f'{program} {config}': f'{SMALLER[program]} {fewer}'
    for program, fewer in (
        ('train', 'train_dataloader.dataset.indices=4 '
                  'val_dataloader.dataset.indices=2'),
        ('test', 'test_dataloader.dataset.indices=2'))
    for config in ('linear_ff_tiny_motion',
                   'configs/linear_ff_tiny_motion.py', 'my_config.py')}
VIDEOS = 'data/motion/val'
STAND_INS = {
    **dict.fromkeys(('VIDEO', 'VIDEO_OR_FOLDER', 'HOURS.mp4'),
                    f'{VIDEOS}/000000.mp4'),
    'VIDEOS': VIDEOS, 'FOLDER': VIDEOS, 'OUT': 'out.mp4'}
STAND_IN = re.compile(
    rf'(?<![\w./])({"|".join(map(re.escape, STAND_INS))})(?![\w.])')
# Other programs, whose arguments are not checked.
FOREIGN = {'cd', 'cp', 'curl', 'docker', 'git', 'ls', 'mkdir', 'mkdocs',
          '.', 'python3', 'trtexec'}


@dataclass(frozen=True)
class Block:
    """A fenced block, with the line number of its first line of text."""
    page: Path
    line: int
    language: str
    rule: str
    name: str
    text: str

    @property
    def place(self) -> str:
        return f'{self.page.relative_to(ROOT)}:{self.line}'


class Parsed(Exception):
    """Raised with the arguments that a program has parsed."""


def pages_to_run() -> list[Path]:
    return [ROOT / 'README.md', *sorted((ROOT / 'docs').rglob('*.md'))]


def pages_to_parse() -> list[Path]:
    """Return the pages outside of docs/."""
    return [*sorted(ROOT.glob('[CS]*.md')), *sorted(
        path for folder in ('configs', 'mmvidattn', 'tools')
        for path in (ROOT / folder).rglob('*.md')
        if '.mim' not in path.parts)]


def read_blocks(page: Path, default: str = 'run') -> list[Block]:
    """Read the blocks of a page that have a rule or are code.

    The rule of an indented command, without a fence, is 'parse'.
    """
    lines = page.read_text('utf-8').splitlines()
    blocks, rule, name, number = [], None, '', 0
    while number < len(lines):
        line = lines[number]
        number += 1
        comment, fence = RULE.fullmatch(line.strip()), FENCE.fullmatch(line)
        if comment:
            rule, name = comment.groups()
        elif fence:
            start, width = number, len(fence['indent'])
            while lines[number].strip() != '```':
                number += 1
            text = '\n'.join(x[width:] for x in lines[start:number]) + '\n'
            language = fence['language']
            number += 1
            if rule or language in ('python', *SHELLS):
                blocks.append(Block(
                    page, start + 1, language, rule or default, name, text))
            rule, name = None, ''
        elif COMMAND.match(line):
            start = number
            while lines[number - 1].endswith('\\'):
                number += 1
            text = '\n'.join(x[4:] for x in lines[start - 1:number]) + '\n'
            blocks.append(Block(page, start, 'bash', 'parse', '', text))
        elif line.strip() and rule:
            raise ValueError(f'{page}:{number}: a rule needs a block below it')
    return blocks


def split_commands(text: str) -> Iterator[list[str]]:
    """Yield the words of each command of a block, without comments."""
    for line in text.replace('\\\n', ' ').splitlines():
        lexer = shlex.shlex(line, posix=True, punctuation_chars='&|;<>')
        lexer.whitespace_split = True
        words = []
        for word in lexer:
            if word in ('&&', '|', ';', '||', '&'):
                yield words
                words = []
            else:
                words.append(word)
        if words:
            yield words


def main_of(words: list[str]) -> tuple[str, list[str]] | None:
    """Return the program of a command and its arguments, or None.

    A program is the name of a subcommand, or a path in the checkout.
    """
    first, program, *rest = words
    if first == 'mmvidattn':
        assert program in find_commands(), f'no command {program!r}'
        return program, rest
    if first == 'python' and program.endswith('.py'):
        command = Path(program).stem.replace('_', '-')
        if command in find_commands() and (
                'from mmvidattn.commands import main' in
                (ROOT / program).read_text()):
            return command, rest
        return program, rest
    if first == 'bash' and (script := LAUNCHER.fullmatch(program)):
        assert (ROOT / program).is_file()
        if script[1] == 'slurm':
            # After the partition and the name of the job.
            return script[2], rest[2:]
        rest.remove(next(word for word in rest if word.isdigit()))
        return script[2], rest
    return None


def parse(words: list[str], monkeypatch: Any) -> None:
    """Check a command without running it.

    Raises:
        AssertionError: If a program, config, extra or option does not exist.
    """
    while words and re.match(r'\w+=', words[0]):
        words = words[1:]
    if '>' in words:
        words = words[:words.index('>')]
    if not words or words[0] in FOREIGN or words[:2] == ['pip', 'uninstall']:
        return
    if 'install' in words[:4]:
        check_installed(words)
        return
    if words[:2] == ['python', '-c']:
        compile(words[2], 'block', 'exec')
        return
    main = main_of(words)
    if main is None:
        assert words[0] == 'bash' and (ROOT / words[1]).is_file(), \
            f'{" ".join(words)}: unknown program'
        return

    def parsing(method):
        def parse_only(self, given=None, namespace=None):
            raise Parsed(method(self, given, namespace))
        return parse_only

    with monkeypatch.context() as patch:
        for name in 'parse_args', 'parse_intermixed_args':
            patch.setattr(argparse.ArgumentParser, name, parsing(
                getattr(argparse.ArgumentParser, name)))
        try:
            run_program(main[0], *main[1])
        except Parsed as parsed:
            check_config(*parsed.args)
        except SystemExit as end:
            assert not end.code, f'{" ".join(words)}: {end}'


def check_config(args: argparse.Namespace) -> None:
    """Check that the config of a command exists, and the options it changes.
    """
    name = getattr(args, 'config', None) or getattr(args, 'model', None)
    if isinstance(name, list):
        words = [None, None, *getattr(args, 'videos', getattr(
            args, 'sources', [])), *name]
        last = words[-1] or ''
        name = words[-2] if last == 'CHECKPOINT' or (
            is_checkpoint(last) and ':' not in last) else None
    if not isinstance(name, str) or name.isupper() or '://' in name \
            or name.endswith(('.onnx', '.pt2')):
        return
    options = getattr(args, 'cfg_options', None)
    if Path(name).is_absolute() or not Path(name).exists():
        path = find_config(ROOT / name if '/' in name else name)
    else:
        path = Path(name)
    load_config(path, options)


def check_installed(words: list[str]) -> None:
    text = (ROOT / 'setup.py').read_text('utf-8').partition('extras_require')
    extras = {*re.findall(r'^ {8}(\w+)=', text[2], re.M)}
    for named in re.findall(r'(?:\.|mmvidattn)\[([\w,]+)\]', ' '.join(words)):
        assert {*named.split(',')} <= extras, named


def check_imports(block: Block) -> None:
    """Check that Python compiles, and that its imports of mmvidattn exist."""
    for node in ast.walk(ast.parse(block.text, block.place)):
        if isinstance(node, ast.ImportFrom) and (
                node.module or '').startswith('mmvidattn'):
            module = importlib.import_module(node.module)
            for alias in node.names:
                assert hasattr(module, alias.name), alias.name


class Scratch:
    """Folder in which the blocks of a page run.

    Args:
        folder: An empty folder.
        motion_dir: A small motion set.
        monkeypatch: Fixture of pytest.
    """

    def __init__(self, folder: Path, motion_dir: Path,
                 monkeypatch: Any) -> None:
        self.folder = folder
        self.monkeypatch = monkeypatch
        self.names: dict[str, Any] = {'__name__': 'page'}
        for name in 'configs', 'tools':
            (folder / name).symlink_to(ROOT / name)
        # Configs of the page may inherit from any config by its name.
        (folder / 'configs_of_page').mkdir()
        for path in (ROOT / 'configs').iterdir():
            (folder / 'configs_of_page' / path.name).symlink_to(path)
        shutil.copytree(motion_dir, folder / 'data/motion')
        quickstart = folder / 'work_dirs/quickstart'
        quickstart.mkdir(parents=True)
        for name in 'epoch_3', 'best_acc_top1_epoch_3':
            shutil.copy(self.checkpoint('linear_ff_tiny_motion'),
                        quickstart / f'{name}.pth')
        monkeypatch.chdir(folder)
        monkeypatch.setenv('MPLBACKEND', 'Agg')
        monkeypatch.setattr(sys, 'path', [*sys.path])

    def forget(self) -> None:
        """Unload the modules of the page, and the classes they registered."""
        for name, module in [*sys.modules.items()]:
            path = getattr(module, '__file__', None) or ''
            if not path.startswith(f'{self.folder}/'):
                continue
            del sys.modules[name]
            for word, cls in [*MODELS.module_dict.items()]:
                if cls.__module__ == name:
                    del MODELS.module_dict[word]

    def checkpoint(self, config: str) -> Path:
        """Return a checkpoint of a config, with random weights."""
        path = self.folder / f'checkpoints/{Path(config).stem}.pth'
        if not path.exists():
            path.parent.mkdir(parents=True, exist_ok=True)
            torch.manual_seed(0)
            model = mmvidattn.get_model(config)
            torch.save(dict(state_dict=model.state_dict(), meta={}), path)
        return path

    def fill(self, text: str) -> str:
        """Replace names in capitals by files.

        ``VIDEO``, ``VIDEO_OR_FOLDER`` and ``HOURS.mp4`` become a video of the
        motion set, ``VIDEOS`` and ``FOLDER`` a folder of videos, ``OUT`` a new
        file, and ``CHECKPOINT`` a checkpoint of the config in the same line.
        """
        lines = []
        for line in text.replace('\\\n', ' ').splitlines():
            if re.search(r'\bCHECKPOINT\b', line):
                line = re.sub(r'\bCHECKPOINT\b',
                              str(self.checkpoint(self.config_in(line))), line)
            lines.append(STAND_IN.sub(lambda m: STAND_INS[m[0]], line))
        return '\n'.join(lines) + '\n'

    def config_in(self, line: str) -> str:
        """Return the path of the config in a line."""
        for word in re.findall(r'[\w./]+', line):
            if '/' in word or not word.endswith('.py') and '_' in word:
                try:
                    path = str(find_config(word))
                except (ValueError, FileNotFoundError):
                    continue
                if path.endswith('.py') and not path.startswith('tools/'):
                    return path
        raise ValueError(f'CHECKPOINT needs a config in its line: {line}')

    def run(self, block: Block) -> None:
        """Process a block by its rule."""
        if block.rule == 'file':
            path = self.folder / block.name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(block.text)
        elif block.rule == 'config':
            self.build(block)
        elif block.rule == 'parse':
            check_block(block, self.monkeypatch)
        elif block.language == 'python':
            # Shift the code, so that errors show the line of the page.
            text = '\n' * (block.line - 1) + self.fill(block.text)
            exec(compile(text, str(block.page), 'exec'), self.names)
        else:
            for words in split_commands(self.fill(block.text)):
                self.run_command(words)

    def build(self, block: Block) -> None:
        base = (f'_base_ = {str(find_config(block.name))!r}\n'
                if block.name else '')
        path = self.folder / 'configs_of_page' / f'line_{block.line}.py'
        path.write_text(base + block.text)
        cfg = load_config(path)
        init_default_scope('mmaction')
        MODELS.build(cfg.model)

    def run_command(self, words: list[str]) -> None:
        if words[1:2] == ['export'] or any(
                word == '--serve' or word.startswith('rtsp:')
                for word in words):
            parse(words, self.monkeypatch)
            return
        program, args = main_of(words)
        kinds = [f'{program} {word}' for word in args]
        kind = next((kind for kind in kinds if kind in SMALLER), program)
        args = merge(args, shlex.split(SMALLER.get(kind, '')))
        try:
            run_program(program, *args)
        except SystemExit as end:
            assert not end.code, f'{" ".join(words)}: {end}'


def merge(args: list[str], more: list[str]) -> list[str]:
    """Merge arguments with those of :data:`SMALLER`."""
    if more[:1] == ['--cfg-options'] and '--cfg-options' in args:
        place = args.index('--cfg-options') + 1
        return [*args[:place], *more[1:], *args[place:]]
    if more and more[0] in args:
        return args
    return [*args, *more]


def check_block(block: Block, monkeypatch: Any) -> None:
    """Check a block without running it."""
    if block.rule == 'file':
        return
    if block.language == 'python':
        check_imports(block)
        return
    for words in split_commands(block.text):
        parse(words, monkeypatch)
