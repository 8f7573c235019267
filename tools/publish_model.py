# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Write the release files of a trained model: weights and config.

    python tools/publish_model.py CONFIG CHECKPOINT --out-dir release

Writes ``<name of the config>_<date>-<hash>.pth`` and ``.safetensors``; the
hash is the first 8 digits of the file's SHA-256. Both contain only the weights
of the model (averaged weights if the training averaged them), the text of the
config and the class names: no optimizer, no paths of the work directory and no
logs.
"""
import argparse
import os
import sys
from collections.abc import Sequence
from datetime import date
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument('config', help='config of the model')
    parser.add_argument('checkpoint', help='checkpoint of a training')
    parser.add_argument(
        '--out-dir', type=Path, default=Path('release'),
        help='folder to write to (default: release)')
    args = parser.parse_args(argv)

    import mmvidattn
    from mmvidattn.apis.bundle import SUFFIXES, save_release
    from mmvidattn.utils.exits import one_line_errors
    from mmvidattn.utils.files import hash_file
    from mmvidattn.utils.printable import echo

    with one_line_errors():
        model = mmvidattn.get_model(args.config, args.checkpoint)
        args.out_dir.mkdir(parents=True, exist_ok=True)
        stem = f'{Path(model.cfg.filename).stem}_{date.today():%Y%m%d}'
        parts = {suffix: args.out_dir / f'{stem}{suffix}.part'
                 for suffix in SUFFIXES}
        save_release(model, parts)
        for suffix, part in parts.items():
            digest = hash_file(part)
            path = args.out_dir / f'{stem}-{digest[:8]}{suffix}'
            os.replace(part, path)
            echo(f'{path}  sha256 {digest}')


if __name__ == '__main__':
    main()
