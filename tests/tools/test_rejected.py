# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Invalid input of each command ends in one line, and writes nothing."""
import re
import shlex
import shutil
from pathlib import Path

import numpy as np
import pytest
import torch
from live_fixtures import write_tsn

from mmvidattn.apis.models import DEFAULTS
from mmvidattn.online.frame_scores import FrameScores, ScoredVideos

SMALL = '{CONFIG} {CHECKPOINT}'
TINY = 'linear_ff_tiny_motion'
# Names in braces are files of the fixture `given`.
ROWS = {
    'annotations': [
        ('{IN}/mine.csv {IN}/mine.csv', 'OUT must differ from IN'),
        ('none.csv', 'file not found: none.csv'),
        ('{IN}/mine.csv --from boris', "got 'boris'.*--columns"),
        ('{IN}/mine.csv x.json --to label-studio',
         'the frame rate of day/a.mp4 is unknown: give the folder'),
        ('{IN}/mine.csv x.eaf', 'x.eaf must be a folder'),
        ('{IN}/mine.csv x.csv --url u', 'url is for label-studio, not csv'),
        ('{IN}/mine.csv --to csv', '--to and --url need OUT'),
        ('{IN}/mine.csv --columns video', 'NAME=COLUMN, got video')],
    'bundle': [
        (f'{SMALL} {{IN}}/notes.txt --force', 'txt exists; choose another')],
    'compare': [
        (f'none {TINY} --out x', 'none does not exist'),
        (f'{{IN}} {TINY} no_config --out x', 'no_config'),
        (f'{{IN}} {TINY} {TINY} --out x', 'different file name'),
        (f'{{IN}} {TINY}=none.pth --out x', "must be a file, 'default' or "
         "'none', got none.pth"),
        ('{IN} xvit_tiny_motion=default --out x', 'xvit_tiny_motion'),
        (f'{{IN}} {TINY}=default xvit_tiny_motion --out x',
         'all configs must start alike'),
        (f'{{IN}} {TINY} {{IN}}/typo.py --out x',
         "typo.py: .*no argument 'num_layer'; did you mean 'num_layers'"),
        (f'{{IN}} {TINY} --out x --epochs 1', 'options of finetune go after'),
        (f'{{IN}} {TINY} --out x -- --seed 3', '--seed is not allowed after')],
    'convert': [
        ('none none.pth x.pth', 'source must be one of .*linear_ff'),
        ('vit_timm {IN}/vit.pth {IN}/vit.pth', 'vit.pth exists.* --force'),
        ('vit_timm {IN}/vit.pth x.pth --config {CONFIG}',
         'does not fit the model')],
    'export': [
        (f'{SMALL} x.pth', 'must end with .pt2 or .onnx'),
        (f'{{VIDEO}} {SMALL} x.pt2', 'expected only BUNDLE, or CONFIG CHECK'),
        (f'{SMALL} x.pt2 --device cuda:99', 'argument --device: cuda:99'),
        (f'{SMALL} x.pt2 --output votes', 'votes')],
    'extract-features': [
        ('{VIDEO} x {TSN} --layer fc', "'fc'; linear layers are .*fc_cls"),
        ('{VIDEO} x {TSN} --flow fast', 'fast'),
        ('{VIDEO} {IN} {TSN}', 'is not empty'),
        ('{VIDEO} x {TSN} --processes 2', '--processes needs --engine ray')],
    'finetune': [
        ('none', 'none does not exist: expected a folder of videos or'),
        ('{IN}/one', 'all videos have the same class, a: '),
        ('{IN}/bad', 'none of 2 videos can be read; first error'),
        ('{IN}/two --work-dir {IN}/two/out', 'must not be inside .*two'),
        ('{IN}/two --weights none.pth', 'no checkpoint file none.pth'),
        ('{IN}/two --weights {BUNDLE}', 'is a bundle: .*model.safetensors'),
        ('{IN}/two --weights {IN}/notes.txt', 'notes.txt is not a checkpoint'),
        ('{IN}/two --model testra_thumos14', 'cannot be fine-tuned: '),
        ('{IN}/two --model dualformer_tiny_tl_k400',
         'TokenLabelHead; use the config without'),
        ('{IN}/two --model vivit_l16x2_fact_encoder_epic',
         'with VerbNounHead'),
        ('x --epochs 0', "--epochs must be a positive integer or .*'auto'"),
        ('x --freeze head', "--freeze must be .*'backbone', 'spatial'"),
        ('x --lora 2 --weights w --freeze 1', 'already'),
        ('x --lora 2 --weights none', '--freeze and --lora need --weights'),
        ('x --multi-label --balance focal', 'focal is not for --multi-label'),
        ('x --loss asymmetric', '--loss needs --multi-label'),
        ('x --val-share 2', r'--val-share must be a number in \[0, 1\]'),
        ('x --layer-decay 2', r'--layer-decay must be a number in \(0, 1'),
        ('x --balance smote', 'smote'),
        ('x --stream', '--stream needs --videos FOLDER'),
        ('x --videos y', '--videos needs --stream'),
        ('x --stream --videos y --lora 2', '--lora is not for --stream'),
        ('x --stream --videos y --model linear_ff_k400',
         '--model must be pixels or features'),
        ('x --stream --videos y --model features --weights none',
         '--model features needs --weights'),
        ('{IN} --stream --videos y --model features --features linear_ff_k400',
         '--features linear_ff_k400 needs --weights')],
    'predict': [
        ('', 'required: VIDEO .mmvidattn'),
        (f'{{IN}}/notes.txt {SMALL}', r'notes.txt[^\n]*\n1$'),
        (f'{{IN}}/clips {SMALL} --out x.mp4', 'folder for 3 videos'),
        (f'{{IN}}/clips/a.mp4 {SMALL} --out {{IN}}/clips',
         'overwrite another video'),
        (f'{{IN}}/clips/a.mp4 {{IN}}/clips/sub/a.MP4 {SMALL} --out x',
         'overwrite another video'),
        (f'{{VIDEO}} {SMALL} --labels {{IN}}/notes.txt', '8 classes .*got 1'),
        (f'{{VIDEO}} {SMALL} --labels {{IN}}/empty.txt', 'has no class name'),
        (f'{{VIDEO}} {SMALL} --out {{IN}}/notes.txt/a.mp4',
         'notes.txt: a file is in'),
        (f'{{VIDEO}} {SMALL} --windows 1 --out x.png', 'must be an .mp4 file'),
        ('x --stride 2', '--stride needs --windows'),
        ('x --windows -1', 'argument --windows: must be positive'),
        ('x --windows 2 --json x.json', 'use --json-lines'),
        ('x --to csv', '--to needs --segments'),
        ('x --thresholds f', '--thresholds needs --segments'),
        ('x --segments x.csv --json-lines y', '--json-lines does not work'),
        (f'{{VIDEO}} {SMALL} --segments x.csv', 'seconds .*--windows'),
        ('x --processes 2', '--processes needs --engine ray'),
        ('x --engine ray', '--engine needs --json FOLDER'),
        ('x --json y --windows 1', '--windows does not work with --json FOL'),
        # The model at the end of the words.
        (f'. x.pth {TINY}', 'x.pth is a checkpoint, where a config'),
        (f'. {TINY}', f"{TINY} needs a checkpoint after it, .*'default'"),
        ('. linear_ff_ssv2', 'needs a checkpoint after it$'),
        ('x.mp4 x.pth', 'x.pth needs a config before it, got x.mp4'),
        ('x.mp4 x.onnx --amp', 'x.onnx is an exported model'),
        ('{BUNDLE} {VIDEO}', 'is a bundle, not a source: give it after'),
        ('{BUNDLE}', f'expected a source before the model .*{TINY}'),
        ('linear_ff_tiny_moton', f'no file linear.*did you mean .*{TINY}')],
    'score': [
        ('{IN}/mine.csv {IN}/mine.csv --subset val', '--subset must be one'),
        ('{IN}/mine.csv {IN}/mine.csv --scores none', 'cannot read the sco'),
        ('{IN}/other.csv {IN}/mine.csv', 'no video in common'),
        ('{IN}/mine.csv {IN}/mine.csv --report {IN}/notes.txt',
         'notes.txt: a file is in the place of a folder'),
        ('{IN}/mine.csv {IN}/mine.csv --protocol mine', 'mine')],
    'stream': [
        ('{CLIP} {DETECTOR} --out x.avi', '--out must end with .mp4, got x'),
        ('{CLIP} {DETECTOR} --plot x.txt', '--plot must end with .png'),
        ('{CLIP} {DETECTOR} --thresholds x --min-duration 1',
         '--min-duration must'),
        ('{CLIP} {DETECTOR} --serve --port 99999', 'cannot listen on 127.0.0.1'
         ', port 99999'),
        ('{CLIP} {DETECTOR} --scores x --state y', '--scores does not work'),
        ('{CLIP} {DETECTOR} --flow x y',
         'modalities rgb of the model, got flow')],
    'targets': [
        ('csv {IN}/notes.txt x --features {IN}/features',
         'columns video, start, end and label .*got no'),
        ('thumos14 {IN} x --features {IN}/features', 'must be csv or json')],
    'test': [
        ('{CONFIG} none.pth', 'no checkpoint file none.pth'),
        ('{CONFIG} {CONFIG}', 'small.py is a config, where a checkpoint'),
        (f'{SMALL} --cfg-options model.backbone.num_layers=2',
         r'does not fit the model Recognizer3D\(LinearVideoTransformer, .*: '
         r'\d+ of \d+ tensors match. missing \d+: backbone.blocks.1'),
        (f'{SMALL} --cfg-options test_dataloader.dataset.num_classes=2',
         "val.txt, line 3: .*from 0 to 1, got '2'"),
        (f'{SMALL} --dump x.json', '--dump must be a file that ends with .p'),
        (f'{SMALL} --work-dir {{IN}}/notes.txt', 'notes.txt: a file is in')],
    'train': [
        ('{CONFIG} --work-dir x --cfg-options '
         'train_dataloader.dataset.num_classes=9',
         'num_classes is 8, but train_dataloader.dataset.num_classes is 9'),
        ('{CONFIG} --cfg-options model.cls_head.num_classes=3 '
         'train_dataloader.dataset.num_classes=None',
         r"train.txt, line 4: .* from 0 to 2 \(.*num_classes is 3\), got '3'"),
        ('{CONFIG} --cfg-options train_dataloader.dataset.num_classes=None '
         'train_dataloader.dataset.ann_file={IN}/mine.csv',
         "mine.csv, line 1: the label must be a number .*, got 'vid"),
        ('{CONFIG} --cfg-options train_dataloader.dataset.num_classes=None '
         'train_dataloader.dataset.type=VideoDataset '
         'train_dataloader.dataset.ann_file={IN}/lost.py',
         'lost.py, line 1: expected <path> <label>, got "_base_'),
        ('{CONFIG} --cfg-options train_dataloader.dataset.num_classes=None '
         'train_dataloader.dataset.ann_file={IN}/empty.txt',
         'error: .*empty.txt is empty'),
        ('{CONFIG} --cfg-options train_dataloader.persistent_worker=1',
         "error: train_dataloader: .*did you mean 'persistent_workers'"),
        ('{CONFIG} --cfg-options train_dataloader.persistent_workers=1',
         'train_dataloader: num_workers=0 needs persistent_workers=False'),
        ('{CONFIG} --cfg-options train_dataloader.batch_size=0',
         'error: train_dataloader: batch_size should be'),
        ('{CONFIG} --cfg-options train_dataloader.dataset.pipeline.1.cliplen='
         '2', "pipeline.1: .* no argument 'cliplen'; did you mean 'clip_len'"),
        ('{IN}/los.py', 'no config file .*los.py; did you mean .*lost.py'),
        ('{CONFIG} --cfg-options val_evaluator=None',
         'has no val_evaluator: set all of val_dataloader, val_cfg, val_eval'),
        ('{CONFIG} --cfg-options train_dataloader.dataset.data_prefix.vid=x',
         "dataset.data_prefix: CheckedVideoDataset reads 'video', got 'vid'"),
        ('{CONFIG} --cfg-options foo', 'must be KEY=VALUE, got foo'),
        ('linear_ff_tiny_motoin', f'did you mean {TINY}'),
        (TINY, 'no annotation file data/motion/.*data_root='),
        ('{CONFIG} --cfg-options model.backbone.num_layrs=1',
         "'num_layrs'; did you mean 'num_layers'"),
        ('{IN}/cut.py', 'cut.py is not a config: .*never closed .cut.py, l'),
        ('{IN}/lost.py', "lost.py: .*none.py: No such.* 'mmvidattn::lin"),
        ('{CONFIG} --cfg-options default_hooks.chekpoint.interval=2',
         'default_hooks.chekpoint has no type; did you mean checkpoint?'),
        ('{CONFIG} --cfg-options default_hooks.checkpoint.save_bset=auto',
         "'save_bset'; did you mean 'save_best'"),
        ('{CONFIG} --cfg-options param_scheduler.0.type=CosineAnealingLR',
         'CosineAnealingLR is not .*did you mean CosineAnnealingLR'),
        ('{CONFIG} --cfg-options train_dataloader.dataset.pipeline.1.num_clip='
         '2', "'num_clip'; did you mean 'num_clips'"),
        ('{CONFIG} --cfg-options model.backbone.type=Mine',
         'backbone: Mine is not .*A class of yours needs @register_module'),
        ('{CONFIG} --cfg-options optim_wrapper.optimizer.type=Adamw',
         'Adamw is not .*did you mean AdamW'),
        ('{CONFIG} --cfg-options optim_wrapper.optimizer.lr=1e3x',
         'error: optim_wrapper.optimizer: .*not supported between'),
        ('{CONFIG} --cfg-options optim_wrapper.optimizer.lr_rate=1',
         "AdamW has no argument 'lr_rate'; it has params, lr, betas"),
        ('{CONFIG} --cfg-options train_cfg.max_epoch=3',
         "'max_epoch'; did you mean 'max_epochs'"),
        ('{CONFIG} --cfg-options model.backbone.attention.type=LinearAttenton',
         'LinearAttenton is not .*did you mean LinearAttention?'),
        ('{CONFIG} --resume none.pth', 'no checkpoint file none.pth'),
        # Without a checkpoint to resume, the start weights remain.
        ('{CONFIG} --resume --cfg-options load_from=none.pth',
         'no checkpoint file none.pth'),
        ('{CONFIG} --cfg-options model.backbone.embed_dims=48 '
         'model.cls_head.in_channels=48 load_from={CHECKPOINT}',
         r'small.pth fits no tensor of the backbone of Recognizer3D\(Linear'),
        ('{CONFIG} --resume {CHECKPOINT} --cfg-options '
         'model.cls_head.num_classes=3', r'fc_cls.weight \(8, 96\), expected'),
        # Weights for other classes load before the missing data are noticed.
        ('{CONFIG} --cfg-options load_from={CHECKPOINT} '
         'model.cls_head.num_classes=3 '
         'train_dataloader.dataset.data_root=nowhere',
         'no annotation file nowhere'),
        ('{CONFIG} --amp --cfg-options optim_wrapper.type=MyWrapper',
         "--amp needs .* 'MyWrapper'"),
        ("{CONFIG} --auto-scale-lr --cfg-options 'auto_scale_lr={}'",
         '--auto-scale-lr needs auto_scale_lr'),
        ('{CONFIG} --lr 1 --cfg-options optim_wrapper.optimizer.lr=2',
         'either --lr or --cfg-options optim_wrapper.optimizer.lr'),
        ('{CONFIG} --epochs 3 --cfg-options train_cfg=None',
         '--epochs needs train_cfg.max_epochs in the config'),
        ('{CONFIG} --cfg-options strategy.type=DeepSpeedStrategy',
         "DeepSpeedStrategy.* is not supported, .*remove strategy")],
    'tune-thresholds': [
        ('none {IN}/mine.csv', 'cannot read the scores .*none'),
        ('{IN}/empty {IN}/mine.csv', r'in .*empty/scores.json: No such'),
        ('{IN}/scores {IN}/other.csv', 'scores, such as b, but .* is of x'),
        ('{IN}/scores {IN}/mine.csv --objective recall', 'need each other'),
        ('{IN}/scores {IN}/mine.csv --false-alarms 1', 'need each other')],
}


@pytest.fixture(scope='session')
def given(motion_dir, small_config, small_checkpoint, files, clip,
          tmp_path_factory):
    """Files of the rows, by their names in braces."""
    folder = tmp_path_factory.mktemp('in')
    video = motion_dir / 'val/000000.mp4'
    for name in ('clips/a.mp4', 'clips/b.mp4', 'clips/sub/a.MP4',
                 'one/a/x.mp4', 'two/a/x.mp4', 'two/b/y.mp4'):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(video, folder / name)
    for name, text in (
            ('notes.txt', 'no weights'), ('cut.py', 'model = dict('),
            ('empty.txt', ''),
            ('lost.py', "_base_ = 'none.py'"),
            ('typo.py', "_base_ = 'mmvidattn::linear_ff_tiny_motion.py'\n"
             'model = dict(backbone=dict(num_layer=1))'),
            ('bad/a/x.mp4', 'no video'),
            ('bad/b/x.mp4', 'no video'),
            ('mine.csv', 'video,start,end,label,subset\n'
             'day/a.mp4,0.5,1.0,run,train\nb.mp4,1.5,2,jump,train\n'),
            ('other.csv', 'video,start,end,label\nx.mp4,0,1,run\n')):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    for name in 'empty', 'features':
        (folder / name).mkdir()
    np.save(folder / 'features/one.npy', np.zeros((40, 3), np.float32))
    ScoredVideos(['none', 'run'], {0}, {'b': FrameScores(
        4., np.full((12, 2), .5, np.float32))}).write(folder / 'scores')
    vit = {'patch_embed.proj.weight': torch.ones(4, 3, 2, 2),
           'patch_embed.proj.bias': torch.zeros(4),
           'blocks.0.norm2.bias': torch.zeros(4)}
    torch.save(vit, folder / 'vit.pth')
    return dict(
        BUNDLE=DEFAULTS / TINY, IN=folder, VIDEO=video, CONFIG=small_config,
        CHECKPOINT=small_checkpoint, DETECTOR=' '.join(map(str, files)),
        CLIP=clip, TSN=write_tsn(folder / 'tsn.py', False))


@pytest.mark.filterwarnings('ignore:option .*num_layrs has no effect')
@pytest.mark.parametrize('command, words, error', [
    (command, *row) for command, rows in ROWS.items() for row in rows])
def test_is_refused_in_one_line(run_main, given, capsys, command, words,
                                error):
    # Not str.format, because options may have braces.
    for name, path in given.items():
        words = words.replace(f'{{{name}}}', str(path))
    before = {*given['IN'].rglob('*')}
    with pytest.raises(SystemExit) as end:
        run_main(command, *shlex.split(words))
    message = f'{capsys.readouterr().err}{end.value}'
    assert f'mmvidattn {command}: error: ' in message
    assert re.search(error, message, re.DOTALL), message
    assert 'Traceback' not in message and '[Errno' not in message
    # A corrected command can use the same folders.
    assert {*given['IN'].rglob('*')} == before
    assert {path.name for path in Path().iterdir()} <= {'work_dirs'}
    assert not [*Path().glob('work_dirs/finetune_*/*')]
