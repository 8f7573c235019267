# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Hook that draws predictions during a test."""
from pathlib import Path

from mmengine.dist import get_dist_info
from mmengine.hooks import Hook
from mmengine.runner import Runner

from ..utils.modules import unwrap
from ..visualization import write_sheet
from .labels import probabilities, top_predictions


class ShowPredictionsHook(Hook):
    """Draw the model's predictions on frames of test videos.

    Unlike mmaction2's ``VisualizationHook``, it supports several views.

    Args:
        out_dir: Folder to write the images to.
        interval: Draw every ``interval``-th video.
    """

    def __init__(self, out_dir: str, interval: int) -> None:
        self.out_dir = out_dir
        self.interval = interval

    def after_test_iter(self, runner: Runner, batch_idx: int,
                        data_batch: dict, outputs: list) -> None:
        loader = runner.test_dataloader
        model = unwrap(runner.model)
        rank, world_size = get_dist_info()
        classes = loader.dataset.metainfo.get('classes', ())
        for i, (clips, sample) in enumerate(
                zip(data_batch['inputs'], outputs)):
            place = batch_idx * loader.batch_size + i
            # The sampler distributes an unshuffled dataset to the ranks in
            # turn.
            index = (place * world_size + rank) % len(loader.dataset)
            if index % self.interval:
                continue
            name = Path(
                loader.dataset.get_data_info(index).get('filename', '')).stem
            lines = [f'{p.label}: {p.score:.3f}' for p in top_predictions(
                probabilities(model, sample.pred_score), classes, topk=1)]
            if sample.gt_label.numel() == 1 and sample.gt_label >= 0:
                label = sample.gt_label.item()
                truth = classes[label] if label < len(classes) else label
                lines.append(f'truth: {truth}')
            # [views, C, T, H, W], or [frames, C, H, W] of a 2D recognizer.
            frames = clips[0].transpose(0, 1) if clips.ndim == 5 else clips
            write_sheet(Path(self.out_dir, f'{index:06d}_{name}.png'),
                        frames.permute(0, 2, 3, 1).byte().numpy(), lines)
