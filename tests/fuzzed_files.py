# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Valid, forged and mutated files, and the loaders that read them."""
import collections
import datetime
import io
import multiprocessing
import os
import pickle
import pickletools
import random
import re
import resource
import struct
import warnings
import zipfile
from pathlib import Path, PurePosixPath
from typing import Any

import mmengine
import numpy as np
import torch
import yaml
from mmaction.structures import ActionDataSample
from mmengine.config import Config, ConfigDict
from mmengine.logging import HistoryBuffer
from mmengine.structures import InstanceData

from mmvidattn.datasets.feature_streams import open_array
from mmvidattn.losses import EqualizationLoss
from mmvidattn.utils.checkpoint import read_checkpoint

FORMATS = 'pkl', 'pth', 'npy', 'yml'
# Memory that loading may use in addition to the process.
MEMORY = 2**30


def harmless() -> dict[str, Any]:
    """Return typical data in pickles, by kind."""
    counts = collections.defaultdict(list, a=[1])
    return dict(
        plain=[{1: (2., 'x')}, {3}, frozenset([4]), b'5', 6j, None, range(7)],
        containers=[counts, collections.Counter('aab'),
                    collections.deque([1, 2], 3),
                    collections.OrderedDict(b=1, a=2)],
        times=[datetime.datetime(2020, 1, 2, tzinfo=datetime.timezone.utc),
               datetime.date(2020, 1, 2), datetime.time(3),
               datetime.timedelta(seconds=4)],
        path=[Path('a/b.mp4'), PurePosixPath('c')],
        config=[ConfigDict(a=dict(b=[1, (2, 3)])), Config(dict(a=dict(b=4)))],
        arrays=[np.arange(6.).reshape(2, 3), np.asfortranarray(np.eye(3, 2)),
                np.array(['ab', 'c']),
                np.array(['2020-01-02'], 'M8[D]'), np.array([3], 'm8[10s]')],
        scalars=[np.float32(.5), np.str_('ab'), np.bytes_(b'ab'),
                 np.bool_(True), np.array('x')],
        tensors=[torch.arange(3), torch.nn.Parameter(torch.ones(2)),
                 torch.float16, torch.device('cpu'), torch.Size([1, 2])],
        samples=[InstanceData(scores=torch.ones(2), names=['a', 'b']),
                 ActionDataSample(metainfo=dict(path=Path('v.mp4')))
                 .set_gt_label(1).set_pred_score(torch.ones(3))])


def _checkpoint() -> dict[str, Any]:
    return dict(
        state_dict=dict(w=torch.ones(2, 3), b=torch.zeros(3)),
        meta=dict(epoch=1, classes=np.array(['ab', 'c']), name=np.str_('ab')),
        message_hub=dict(loss=HistoryBuffer([.5, .25], [1, 2]),
                         best=np.float32(.75), counts=np.arange(3)))


def _npy(array: np.ndarray) -> bytes:
    file = io.BytesIO()
    np.save(file, array)
    return file.getvalue()


def torch_saved(value: Any, is_zip: bool = True) -> bytes:
    """Return a file of ``torch.save``, new or of torch before 1.6."""
    file = io.BytesIO()
    torch.save(value, file, _use_new_zipfile_serialization=is_zip)
    return file.getvalue()


YAML = ['''\
a: &a {x: 1, y: [1.5, .inf, ~, true, 0x1F, 1_000, 12:30:45]}
b: {<<: *a, z: 2020-01-02 03:04:05.5 +01:00}
d: !!set {p, q}
c: !!binary aGVsbG8=
''', '''\
model: {type: Recognizer3D, dims: !!python/tuple [1, 2, 3]}
text: |
  first
  second
''', '''\
- !!python/object/apply:datetime.timedelta [0, 4, 0]
- !!python/object/apply:collections.OrderedDict
  - - [b, 1]
- !!python/object/apply:pathlib.PosixPath [a, b.mp4]
- !!python/name:builtins.list ''
- !!python/object/new:mmengine.config.config.ConfigDict
  dictitems: {a: 1}
''']


def valid_files(kind: str) -> list[bytes]:
    """Return files of a format that its loader accepts."""
    if kind == 'pkl':
        # numpy would load 'i2' in the native byte order.
        values = [*harmless().values(), np.arange(3, dtype='>i2')]
        return [pickle.dumps(value, protocol)
                for value in values for protocol in (2, 4, 5)]
    if kind == 'pth':
        return [torch_saved(_checkpoint(), is_zip)
                for is_zip in (True, True, False)]
    if kind == 'npy':
        return [_npy(array) for array in (
            np.ones((4, 2), np.float32), np.arange(6.),
            np.asfortranarray(np.ones((3, 2))), np.ones((2, 2), '>i2'),
            np.ones((0, 2), bool))]
    return [text.encode() for text in YAML]


def put(value: Any) -> bytes:
    """Return the instructions that push a plain value."""
    return pickletools.optimize(pickle.dumps(value, 2))[2:-1]


def push_bytes(data: bytes) -> bytes:
    return b'c_codecs\nencode\n' + put((data.decode('latin1'), 'latin1')) + (
        b'R')


def push_dtype(code: str, state: bytes = b'') -> bytes:
    return b'cnumpy\ndtype\n' + put((code, False, True)) + b'R' + (
        state + b'b' if state else b'')


def push_array(dtype: bytes, shape: tuple, data: bytes) -> bytes:
    return (b'cnumpy._core.multiarray\n_reconstruct\n(cnumpy\nndarray\nK\0\x85'
            + push_bytes(b'b') + b'tR(K\1' + put(shape) + dtype + b'\x89'
            + push_bytes(data) + b'tb')


def _fields(size: int, flags: int, inner: bytes) -> bytes:
    """Return the state of a dtype with a field ``f``."""
    return (b'(' + put(3) + put('|') + b'N' + put(('f', )) + b'}' + put('f')
            + inner + put(0) + b'\x86s' + put(size) + put(1) + put(flags)
            + b't')


S8 = 3, '|', None, None, None, 8, 1, 0
FLAGS = (*S8[:-1], 63)
HUGE = (*S8[:5], 2**30, 1, 0)
STATES = {
    'fields of S8': _fields(8, 0, push_dtype('S8')),
    'fields of objects': _fields(8, 0, push_dtype('O8', put(
        (3, '|', None, None, None, -1, -1, 63)))),
    'fields of S8 with the flags of objects': _fields(
        8, 0, push_dtype('S8', put(FLAGS))),
    'flags of objects': put(FLAGS),
    'huge item': put(HUGE),
    'negative item': put((*S8[:5], -8, 1, 0)),
    'subarray': b'(' + put(3) + put('|') + push_dtype('S8') + put(
        (2**20, )) + b'\x86NN' + put(8) + put(1) + put(0) + b't',
    'unit with a field': put((4, '<', None, None, None, -1, -1, 0, (
        None, ('ns],O', 1, 1, 1)))),
    'no tuple': b'N',
}
MORE = 4096


def nested(wrap: bytes, levels: int) -> bytes:
    """Return instructions that wrap None ``levels`` times, in a row."""
    return b'N' + wrap * levels


# Instructions that wrap the top of the stack, copied in the memo.
WRAPS = dict(
    tuple=b'\x85',
    deque=b'q\x000ccollections\ndeque\n]h\x00a\x85R',
    defaultdict=b'q\x000ccollections\ndefaultdict\nN}K\x01h\x00s\x86R',
    slice=b'q\x000c__builtin__\nslice\nh\x00\x85R')


def rezipped(data: bytes, contents: dict[str, bytes],
             compression: int = zipfile.ZIP_STORED) -> bytes:
    """Copy an archive, with new contents of some members."""
    target = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(data)) as old, \
            zipfile.ZipFile(target, 'w', compression) as new:
        for item in old.infolist():
            new.writestr(item.filename, contents[item.filename]
                         if item.filename in contents
                         else old.read(item.filename))
    return target.getvalue()


def zip_of_pickle(code: bytes) -> bytes:
    """Return a file of ``torch.save`` with another pickle."""
    return rezipped(torch_saved(_checkpoint()), {'archive/data.pkl': code})


def forged_files() -> dict[str, tuple[str, bytes]]:
    """Return files that are meant to kill the process, by their fault."""
    codes = {}
    for name, state in STATES.items():
        for code in 'S8', 'V8', 'U2', 'M8':
            codes[f'{code} with {name}'] = push_array(
                push_dtype(code, state), (1, ), b'A' * 8)
        codes[f'scalar of {name}'] = (
            b'cnumpy._core.multiarray\nscalar\n' + push_dtype('S8', state)
            + push_bytes(b'A' * 8) + b'\x86R')
    plain = push_dtype('S8', put(S8))
    array = push_array(plain + b'q\1', (1, ), b'A' * 8)
    codes |= {
        'dtype changed below its array': b'(' + array + b'h\1' + put(
            HUGE) + b'bt',
        'array of another size': push_array(plain, (MORE, ), b'A' * 8),
        'array of a negative size': push_array(plain, (-1, -1), b'A' * 8),
        'array of empty items': push_array(
            push_dtype('S0', put((*S8[:5], 0, 1, 0))), (2**40, ), b''),
        'array of objects': push_array(push_dtype('O8'), (1, ), b'A' * 8),
        'array that is set twice': array + b'(K\1' + put((MORE, )) + (
            b'h\1\x89') + push_bytes(b'A' * 8 * MORE) + b'tb',
        'scalar of other size': b'cnumpy._core.multiarray\nscalar\nh\1'
        .replace(b'h\1', plain) + push_bytes(b'A') + b'\x86R',
        'array that was called': b'cnumpy\nndarray\n' + put(
            ((10**11, ), )) + b'R',
        'array that was made new': b'cnumpy\nndarray\n' + put(
            ((2**20, ), )) + b'\x81'}
    files = {f'{name}, {kind}': (
        kind, b'\x80\2' + code + b'.' if kind == 'pkl' else zip_of_pickle(
            b'\x80\2}' + put('meta') + code + b's.'))
        for name, code in codes.items() for kind in ('pkl', 'pth')}
    calls = {
        'huge list': b'c__builtin__\nlist\nc__builtin__\nrange\n' + put(
            (10**10, )) + b'R\x85R',
        'huge bytes': b'c__builtin__\nbytearray\n' + put((10**11, )) + b'R',
        'huge new bytes': b'c__builtin__\nbytes\n' + put((10**11, ))
        + b'\x81',
        'method of a list for a state': b'ccollections\nOrderedDict\n)R}'
        + put('__setstate__') + b'c__builtin__\nbytearray\nsb' + put(10**11)
        + b'b',
        'storage of a path': b'ctorch.storage\n_load_from_bytes\n'
        + put(('no_such_file', )) + b'R',
        'storage of a handle': b'ctorch.storage\n_load_from_bytes\n'
        + put((10**6, )) + b'R',
        'stride that is a tuple': b'ctorch._utils\n_rebuild_tensor_v2\n'
        + put((None, 0, (10**11, ), ((1, ), ), False, {})) + b'R',
        'instance of Python 2': b'(i__builtin__\nlist\n'}
    calls |= {f'nested {name}': nested(wrap, 200_000)
              for name, wrap in WRAPS.items() if name != 'tuple'}
    deep = nested(WRAPS['tuple'], 400_000)
    calls['nested key'] = b'}' + deep + b'Ns'
    files |= {name: ('pkl', b'\x80\2' + code + b'.')
              for name, code in calls.items()}
    files['nested key, pth'] = 'pth', zip_of_pickle(
        b'\x80\2}' + deep + b'Ns.')
    laughs = '\n'.join(['a0: &a0 {x: 1}'] + [
        f'a{i}: &a{i} {{<<: [*a{i - 1}, *a{i - 1}]}}' for i in range(1, 40)])
    texts = {
        'forged dtype': '!!python/object/apply:numpy.dtype\nargs: [V8]\n'
        'state: !!python/tuple [3, "|", null, !!python/tuple [f], {f: !!python'
        '/tuple [!!python/object/apply:numpy.dtype [S8], 9999]}, 8, 1, 63]',
        'array': '!!python/object/apply:numpy.ndarray [[100000000000]]',
        'huge list': '!!python/object/apply:builtins.list '
        '[!!python/object/apply:builtins.range [10000000000]]',
        'huge bytes': '!!python/object/apply:builtins.bytearray [100000000000'
        ']',
        'huge named bytes': '!!python/object/apply:builtins.bytearray {kwds: '
        '{source: 100000000000}}',
        'nested lists': '[' * 100_000,
        'nested tuples': '!!python/tuple [' * 50_000,
        'nested keys': '? ' * 100_000,
        'merged merges': laughs + '\nz: !!python/object/apply:os.getcwd []'}
    return files | {f'{name}, yml': ('yml', text.encode())
                    for name, text in texts.items()}


def mutate(kind: str, seed: int) -> bytes:
    """Return a valid file of a format, changed at random by a seed."""
    rng = random.Random(f'{kind} {seed}')
    data = rng.choice(valid_files(kind))
    if rng.random() < .3:
        return _mutate_bytes(rng, data)
    if kind == 'pkl':
        return _mutate_code(rng, data)
    if kind == 'pth':
        return _mutate_checkpoint(rng, data)
    if kind == 'npy':
        head = _mutate_tokens(rng, data[10:128], 3, (
            *map(repr, CODES), *map(str, NUMBERS), '', '((' * 500, '{',
            "[('a', 'O')]", "('f4', (9,))", '__import__("os").mkdir("made")'))
        size = struct.pack('<H', len(head) if rng.random() < .9 else 65535)
        return data[:8] + size + head + data[128:]
    return _mutate_tokens(rng, data, 4, (*WORDS, *map(str, NUMBERS)))


def _mutate_bytes(rng: random.Random, data: bytes) -> bytes:
    for _ in range(rng.randint(1, 8)):
        start = rng.randrange(len(data) + 1)
        end = min(len(data), start + rng.randint(0, 16))
        data = rng.choice((
            data[:start] + rng.randbytes(end - start) + data[end:],
            data[:start] + data[end:],
            data[:end] + data[start:])) or b'\0'
    return data


def _mutate_tokens(rng: random.Random, data: bytes, most: int,
                   words: tuple[str, ...]) -> bytes:
    """Replace up to ``most`` tokens of a text with words, or repeat them."""
    tokens = re.findall(r'\s+|\w+|\W', data.decode())
    for _ in range(rng.randint(1, most)):
        here = rng.randrange(len(tokens))
        tokens[here:here + 1] = rng.choice((
            [rng.choice(words)], [], [tokens[here], rng.choice(words)],
            [tokens[here]] * 3)) or ['']
    return ''.join(tokens).encode('utf-8', 'surrogatepass')


NUMBERS = (0, 1, -1, 8, 256, 2**15, 2**31 - 1, -2**31, 2**40, 2**63, 10**30)
NAMES = (
    'numpy dtype', 'numpy ndarray', 'numpy._core.multiarray _reconstruct',
    'numpy._core.multiarray scalar', 'numpy._core.numeric _frombuffer',
    'numpy void', 'numpy load', 'builtins getattr', 'builtins list',
    'builtins bytearray', 'builtins range', 'builtins slice', 'builtins eval',
    'collections OrderedDict', 'collections deque', 'collections defaultdict',
    'datetime datetime', 'pathlib PosixPath',
    'torch._utils _rebuild_tensor_v2', 'torch._utils _rebuild_parameter',
    'torch FloatStorage', 'torch Size', 'torch.storage _load_from_bytes',
    '_codecs encode', 'mmengine.logging.history_buffer HistoryBuffer',
    'os mkdir', 'mmengine.config.config ConfigDict',
    'mmengine.config.config Config',
    'mmaction.structures.action_data_sample ActionDataSample')
CODES = ('O8', 'S8', 'S0', 'S2147483647', 'U2', 'V8', 'f4', 'c32', 'M8', '<f4',
         '>f8', 'f4,f4', '(2,)f4', '|', 'latin1', 'mean', '__class__')
CANARY = b'cos\nmkdir\n' + put(('made', )) + b'R'


def _global(rng: random.Random) -> bytes:
    return b'c%s\n%s\n' % tuple(rng.choice(NAMES).encode().split())


def _insertion(rng: random.Random) -> bytes:
    number = put((rng.choice(NUMBERS), ))
    state = rng.choice([*STATES.values()])
    return rng.choice((
        *(bytes([code]) for code in b'Rb\x8120(t\x85as]}'),
        bytes([ord('h'), rng.randrange(24)]),
        struct.pack('<cI', b'r', rng.choice(NUMBERS) % 2**32),
        _global(rng), _global(rng) + b')R', _global(rng) + number + b'R',
        _global(rng) + number + b'\x81', put(rng.choice(CODES)),
        state + b'b', CANARY,
        push_array(push_dtype(rng.choice(CODES), state), (1, ), b'A' * 8),
        rng.choice([*WRAPS.values()]) * 10 ** rng.randint(0, 4)))


def _mutate_code(rng: random.Random, code: bytes) -> bytes:
    """Change random instructions of a pickle."""
    starts = [start for _, _, start in pickletools.genops(code)]
    # Drop frames, because their lengths would be wrong.
    parts = [(op.name, code[start:end]) for (op, _, start), end in zip(
        pickletools.genops(code), [*starts[1:], len(code)])
        if op.name != 'FRAME']
    for _ in range(rng.choice((1, 1, 2, 3))):
        here = rng.randrange(1, len(parts))
        name, there = parts[here][0], rng.randrange(len(parts))
        how = rng.randrange(4)
        if how == 0:
            del parts[here - 1]
        elif how == 1:
            parts[here], parts[there] = parts[there], parts[here]
        elif how == 2 and 'GLOBAL' in name:
            drop = b'00' if name == 'STACK_GLOBAL' else b''
            parts[here] = 'GLOBAL', drop + _global(rng)
        elif how == 2 and name == 'BUILD':
            # Replace a state or add another one.
            parts[here] = name, rng.choice((b'b', b'0')) + rng.choice(
                [*STATES.values()]) + b'b'
        elif how == 2 and 'INT' in name or 'UNICODE' in name:
            parts[here] = name, put(rng.choice(
                NUMBERS if 'INT' in name else CODES))
        else:
            parts.insert(here, ('', _insertion(rng)))
    return b''.join(part for _, part in parts)


def _mutate_checkpoint(rng: random.Random, data: bytes) -> bytes:
    if not zipfile.is_zipfile(io.BytesIO(data)):
        # The format before torch 1.6 has five pickles.
        file, ends = io.BytesIO(data), [0]
        for _ in range(5):
            collections.deque(pickletools.genops(file), 0)
            ends.append(file.tell())
        which = rng.choice((3, 3, 3, 4))
        start, end = ends[which:which + 2]
        return data[:start] + _mutate_code(rng, data[start:end]) + data[end:]
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        names = archive.namelist()
        chosen = rng.choice([n for n in names if n.endswith('.pkl')] * 8
                            + names)
        part = archive.read(chosen)
    change = _mutate_code if part.startswith(b'\x80') else _mutate_bytes
    return rezipped(data, {chosen: change(rng, part or b'\0')})


WORDS = (
    '[' * 10, '[' * 20_000, '{', '&a ', '*a', '<<: [*a, *a]', '? ', '- ',
    '!!int ', '!!float x', '!!timestamp 2020-13-01', '9' * 5000, '1:' * 99,
    '%YAML 9.9\n---\n', '!!python/tuple [', '!!python/name:os.mkdir ',
    '!!python/object/apply:os.mkdir [made]',
    '!!python/object/new:os.mkdir [made]',
    '!!python/object/apply:builtins.bytearray [10000000000]',
    '!!python/object/apply:numpy.dtype [O]',
    '!!python/object/apply:mmengine.config.config.Config [{}, null, x.yml]',
    '!!python/object:pathlib.PosixPath {_parts: 1}', '!!python/bytes "é"',
    '!!python/complex 1+', '\x85', '\u2028', '\0', '\t')


def _load(kind: str, data: bytes) -> Any:
    """Write a file to the folder of the process, and return its contents."""
    path = Path(f'x.{kind}')
    path.write_bytes(data)
    if kind == 'pth':
        return read_checkpoint(path)
    if kind == 'npy':
        results = []
        for read in (lambda: np.array(open_array(path)),
                     lambda: EqualizationLoss(path).tail):
            try:
                results.append(read())
            except ValueError as error:
                _check_memory(error)
                last = error
        if not results:
            raise last
        return results
    return mmengine.load(path)


EXPECTED = dict(
    pkl=pickle.UnpicklingError, pth=ValueError, npy=ValueError,
    yml=(yaml.YAMLError, UnicodeDecodeError))


def _check_memory(error: BaseException | None) -> None:
    # torch only reserves the memory that a forged tensor announces, and
    # refuses the tensor before it touches that memory.
    while error is not None:
        if isinstance(error, MemoryError):
            raise MemoryError(str(error)) from error
        error = error.__cause__


def _use(value: Any) -> None:
    """Read all numbers and strings of a value."""
    stack, seen = [value], set()
    while stack and len(seen) < 10_000:
        value = stack.pop()
        if id(value) in seen:
            continue
        seen.add(id(value))
        if isinstance(value, HistoryBuffer):
            stack.append(vars(value))
        if isinstance(value, dict):
            stack += [*value, *value.values()]
        elif isinstance(value, (list, tuple, set, frozenset)):
            stack += value
        else:
            try:
                repr(value), str(value), hash(str(value))
                if isinstance(value, (np.ndarray, np.generic, torch.Tensor)):
                    value.tolist(), value == value
                    pickle.dumps(value)
                if isinstance(value, np.ndarray):
                    value.copy().sort()
            except MemoryError:
                raise
            except Exception:
                # For example, a date in month 200 cannot be printed.
                pass


def outcome_of(kind: str, data: bytes) -> str:
    """Load a file and use its contents.

    Returns:
        ``loaded``, ``refused: <first error>``, or ``WRONG: <reason>``.
    """
    try:
        value = _load(kind, data)
        _use(value)
        outcome = 'loaded'
    except EXPECTED[kind] as error:
        try:
            _check_memory(error)
        except MemoryError:
            return 'WRONG: it uses too much memory'
        if len(str(error)) < 10:
            return f'WRONG: {error!r} has no reason'
        outcome = f'refused: {type(error.__cause__ or error).__name__}'
    except BaseException as error:
        return f'WRONG: {type(error).__name__}: {error}'
    if Path('made').exists():
        return 'WRONG: code was run'
    return outcome


def _child(files: list[tuple[str, str, Any]], folder: Path) -> None:
    warnings.simplefilter('ignore')
    torch.set_num_threads(1)
    os.chdir(folder)
    pages = int(Path('/proc/self/statm').read_text().split()[0])
    limit = pages * resource.getpagesize() + MEMORY
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    with open('log', 'a', encoding='utf-8') as log:
        for name, kind, data in files:
            print(name, end='\t', file=log, flush=True)
            if data is None:
                data = mutate(kind, int(name.split()[1]))
            outcome = outcome_of(kind, data).encode('ascii', 'replace')
            print(*outcome.decode().split(), file=log)


def outcomes(files: list[tuple[str, str, Any]], folder: Path,
             seconds: float) -> dict[str, str]:
    """Load files in a separate process.

    Args:
        files: Name, format and contents of each file. The contents None stand
            for the mutated file with the name ``<format> <seed>``.
        folder: An empty folder.
        seconds: Time limit for all files.

    Returns:
        Outcome of each file, see :func:`outcome_of`. If the process dies or
        exceeds the limit, that is the outcome of its current file, and later
        files are missing.
    """
    process = multiprocessing.get_context('fork').Process(
        target=_child, args=(files, folder))
    with warnings.catch_warnings():
        # From Python 3.12 on, forking warns about the threads of torch.
        warnings.simplefilter('ignore', DeprecationWarning)
        process.start()
    process.join(seconds)
    end = f'exit code {process.exitcode}'
    if process.is_alive():
        process.kill()
        process.join(10)
        end = f'more than {seconds} s'
    lines = (folder / 'log').read_text('utf-8').rstrip('\n').split('\n')
    results = dict(line.split('\t', 1) for line in lines)
    if len(results) < len(files) or '' in results.values():
        results[lines[-1].split('\t')[0]] = f'WRONG: {end}'
    return results
