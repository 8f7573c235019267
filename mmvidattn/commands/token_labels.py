# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Write a teacher's token labels for the training clips."""
import argparse
import sys

import torch
from mmaction.registry import DATASETS, MODELS
from mmengine.config import Config
from mmengine.dataset import pseudo_collate
from mmengine.registry import init_default_scope
from torch.utils.data import DataLoader, Dataset

from ..apis import load_config
from ..apis.runner import one_line_errors
from ..recognizers.token_label_store import TokenLabelStore
from ..utils.printable import echo


class Views(Dataset):
    """Views of the videos of a dataset.

    Args:
        dataset: Dataset with FixedViews in its pipeline.
        views: Indices (video, view).
    """

    def __init__(self, dataset: Dataset,
                 views: list[tuple[int, int]]) -> None:
        self.dataset = dataset
        self.views = views

    def __len__(self) -> int:
        return len(self.views)

    def __getitem__(self, i: int) -> dict | None:
        video, view = self.views[i]
        info = self.dataset.get_data_info(video)
        try:
            data = self.dataset.pipeline(dict(info, view=view))
        except Exception as error:
            # Training skips unreadable videos, so they need no labels.
            reason = (str(error).strip() or type(error).__name__)
            echo(f'skipped {info["filename"]}: {reason.splitlines()[0]}',
                 file=sys.stderr)
            return None
        return dict(data, place=(video, view))


def collate(samples: list[dict | None]) -> dict | None:
    samples = [sample for sample in samples if sample is not None]
    if not samples:
        return None
    places = [sample.pop('place') for sample in samples]
    return dict(pseudo_collate(samples), places=places)


def fixed_views(cfg: Config) -> dict:
    """Return FixedViews of the config's training pipeline.

    Raises:
        ValueError: If FixedViews or the teacher is missing.
    """
    steps = [step for step in cfg.train_dataloader.dataset.pipeline
             if step.type == 'FixedViews']
    if len(steps) != 1:
        raise ValueError('the training pipeline of the config must have one '
                         f'FixedViews, got {len(steps)}')
    if cfg.model.get('teacher') is None or \
            cfg.model.get('label_store') is None:
        raise ValueError('the model of the config must have a teacher, a '
                         'teacher_checkpoint and a label_store')
    return steps[0]


@torch.no_grad()
def write_labels(cfg: Config, args: argparse.Namespace) -> None:
    init_default_scope('mmaction')
    step = fixed_views(cfg)
    folder = cfg.model.label_store
    cfg.model.label_store = None
    torch.manual_seed(0)
    model = MODELS.build(cfg.model).to(args.device).eval()
    dataset = DATASETS.build(cfg.train_dataloader.dataset)
    names = [dataset.get_data_info(i)['filename']
             for i in range(len(dataset))]
    topk = min(model.topk, model.cls_head.num_classes)
    # Run the student on one clip to get the shape of the tokens.
    views = Views(dataset, [(i, 0) for i in range(len(names))])
    first = next(filter(None, map(views.__getitem__, range(len(names)))), None)
    if first is None:
        raise ValueError(
            f'cannot open any of the {len(names)} training videos')
    inputs = model.data_preprocessor(collate([first]))['inputs']
    shape = tuple(model.extract_feat(inputs)[0].shape[2:])
    store = TokenLabelStore.create(
        folder, names, step.get('num_views', 1), (*shape, topk),
        seed=step.get('seed', 0),
        num_classes=model.cls_head.num_classes,
        teacher_checkpoint=cfg.model.get('teacher_checkpoint'),
        transforms=[str(dict(t)) for t in step.transforms])
    missing = list(store.missing())
    total = store.done.size
    echo(f'{folder}: {total - len(missing)} of {total} views exist')
    loader = DataLoader(
        Views(dataset, missing),
        batch_size=args.batch_size,
        num_workers=args.workers,
        collate_fn=collate)
    written = total - len(missing)
    for data in loader:
        if data is None:
            continue
        places = data.pop('places')
        inputs = model.data_preprocessor(data)['inputs']
        best = model.teacher_logits(inputs, shape).float().topk(topk)
        for place, values, classes in zip(places, best.values, best.indices):
            store.write(*place, values, classes)
        written += len(places)
        echo(f'{written} of {total}', file=sys.stderr)
    echo(f'{folder}: {written} of {total} views exist')


def run(args: argparse.Namespace) -> None:
    with one_line_errors():
        write_labels(load_config(args.config, args.cfg_options), args)
