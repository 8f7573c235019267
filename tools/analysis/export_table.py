# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Export a small model of each family, and write the table of export.md.

    python tools/analysis/export_table.py --models DualFormer

Each model is exported with a dynamic batch size and compared with the exported
program. Rows of other models are kept.
"""
import argparse
import re
import sys
import tempfile
from pathlib import Path
from typing import Any, NamedTuple

import torch

from mmvidattn import get_model
from mmvidattn.export import FORMATS, export_program, program_of

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
from tools.analysis.ablation_table import ROOT, table

PAGE = ROOT / 'configs/export.md'
# The cells of a format have the largest difference, and the size of the file.
COLUMNS = 'model', 'config', *sorted(FORMATS)


class Small(NamedTuple):
    """Small model of a family.

    Attributes:
        config: Name of the config.
        options: Changes to the config.
        kernel: Kernel of a stream's long memory.
    """
    config: str
    options: dict[str, Any] = {}
    kernel: str | None = None

    def program(self, **kwargs: Any) -> torch.nn.Module:
        """Build the program with random weights.

        Args:
            kwargs: Further arguments of ``program_of``.
        """
        torch.manual_seed(0)
        model = get_model(self.config, cfg_options=self.options)
        frames = getattr(model.backbone, 'num_frames', None)
        shape = frames and (frames, 64, 64)
        return program_of(model, shape, kernel=self.kernel, **kwargs)


MODELS = {
    'linear video transformer':
    Small('linear_ff_tiny_motion'),
    'XViT':
    Small('xvit_ssv2', {
        'model.backbone': dict(num_frames=8, img_size=64, embed_dims=96,
                               num_layers=2, num_heads=4),
        'model.cls_head': dict(in_channels=96, num_heads=4, hidden_dims=96)}),
    'ViViT 1, joint':
    Small('vivit_tiny_motion'),
    'ViViT 2, factorized encoder':
    Small('vivit_tiny_fact_encoder_motion'),
    'ViViT 3, factorized attention':
    Small('vivit_tiny_motion', {'model.backbone.model': 'fact_attention'}),
    'ViViT 4, factorized dot product':
    Small('vivit_tiny_motion', {'model.backbone.model': 'fact_dot'}),
    'LAPS on Visformer':
    Small('laps_tiny_motion'),
    'LAPS on ResT':
    Small('laps_rest_s_k400', {
        'model.backbone.arch': dict(
            _delete_=True, embed_dims=16, num_layers=(1, 2, 2, 1),
            num_heads=(1, 2, 4, 8)),
        'model.cls_head.in_channels': 128}),
    'LAPS on ViT':
    Small('laps_vit_k400', {
        'model.backbone.arch': dict(
            _delete_=True, embed_dims=96, num_layers=3, num_heads=4),
        'model.backbone.img_size': 64, 'model.cls_head.in_channels': 96}),
    'DualFormer':
    Small('dualformer_tiny_motion'),
    'DualFormer, token labels':
    Small('dualformer_tiny_tl_motion'),
    'LoRA, merged':
    Small('linear_ff_tiny_motion', {
        'model.type': 'FineTunedRecognizer3D', 'model.lora': dict(rank=4)}),
    'TeSTra, step, window':
    Small('testra_tiny_synthetic'),
    'TeSTra, step, smoothing':
    Small('testra_tiny_synthetic', kernel='smoothing'),
    'LSTR, step':
    Small('testra_tiny_synthetic', {
        'model.backbone': dict(decay=1., fusion='none',
                               long_memory_pos_embed=True)}),
}


def row_of(name: str) -> str:
    """Export a model to each format and return its row of the table."""
    cells = [name, f'`{MODELS[name].config}`']
    with tempfile.TemporaryDirectory() as folder:
        for format in sorted(FORMATS):
            path = Path(folder, f'model.{format}')
            try:
                differences = export_program(MODELS[name].program(), path)
            except ValueError as error:
                cells.append(f'not exported: {error}')
                continue
            cells.append(f'{max(differences.values()):.1e}, '
                         f'{path.stat().st_size / 1e6:.1f} MB')
    return table(COLUMNS, [cells])[-1]


def replace_row(text: str, row: str) -> str:
    """Put a row into the table of the page, in the order of MODELS."""
    head = ''.join(f'{line}\n' for line in table(COLUMNS, []))
    before, rest = text.split(head)
    old = re.match(r'(?:\|.*\n)*', rest)[0]
    lines = {line.split('|')[1].strip(): line
             for line in (*old.splitlines(), row)}
    new = ''.join(f'{lines[name]}\n' for name in MODELS if name in lines)
    return before + head + new + rest[len(old):]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--models', nargs='+', choices=MODELS,
                        default=[*MODELS])
    args = parser.parse_args()
    for name in args.models:
        row = row_of(name)
        print(row, flush=True)
        PAGE.write_text(replace_row(PAGE.read_text(), row))


if __name__ == '__main__':
    main()
