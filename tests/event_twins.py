# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Event metrics in loops over lists, written independently of the package."""
import math
import random
import statistics
from functools import cache

import numpy as np

from mmvidattn.datasets.annotations.video_segment import VideoSegment


def segment(video, start, end, label, score=None):
    return VideoSegment(f'{video} {start} {end} {label}', video, start, end,
                        dict(action=label), 'here', score=score)


def drawn_case(seed):
    """Draw predictions, truth and videos.

    Times and scores are few, so that ties, equal segments, touching segments,
    zero lengths and overlaps are frequent. Some classes have only predictions,
    only truth, or nothing, and some videos are empty.
    """
    rng = random.Random(seed)
    videos = [f'v{i}' for i in range(rng.randint(1, 4))]
    grid = rng.choice([1., .5, .37])

    def draw(video=None, name='', start=None, length=None):
        start = grid * rng.randint(0, 12) if start is None else start
        length = (grid * rng.choice([0, 1, 1, 2, 3, 5]) if length is None
                  else length)
        if rng.random() < .3:
            start += grid * rng.random() / 2
        return video or rng.choice(videos), start, start + length, name

    truth = [segment(*draw(name=rng.choice('bcd')))
             for _ in range(rng.choice([0, 3, 6, 10]))]
    predictions = []
    for _ in range(rng.choice([0, 6, 12, 20])):
        score = rng.choice([.1, .2, .5, .5, .9, rng.random()])
        one = draw(name=rng.choice('abc'))
        if truth and rng.random() < .7:
            near = rng.choice(truth)
            name = label(near) if rng.random() < .9 else 'a'
            one = draw(near.video, 'c' if name == 'd' else name, near.start,
                       near.end - near.start)
        predictions.append(segment(*one, score))
    return predictions, truth, videos


def iou(p, g):
    """Overlap by length of intersection and union."""
    both = min(p.end, g.end) - max(p.start, g.start)
    if both <= 0:
        return 0.
    return both / ((g.end - g.start) + (p.end - p.start) - both)


def label(one):
    return one.labels['action']


def ranked(predictions):
    """Sort by score; Python's sort keeps the order of ties."""
    return sorted(predictions, key=lambda p: -p.score)


def points_of(flags):
    """Hits and precision after each flag True or False; None does not count.
    """
    hits, points = 0, []
    for flag in flags:
        if flag is not None:
            hits += flag
            points.append((hits, hits / (len(points) + 1)))
    return points


def area(flags, positives):
    """Area below the interpolated curve."""
    result, last, points = 0., 0, points_of(flags)
    for i, (hits, _) in enumerate(points):
        if hits > last:
            result += (hits - last) / positives * max(p for _, p in points[i:])
            last = hits
    return result


def eleven_points(flags, positives):
    return statistics.fmean(
        max((p for hits, p in points_of(flags)
             if 10 * hits >= t * positives), default=0.) for t in range(11))


def classes_of(truth):
    return sorted({label(g) for g in truth})


def activitynet_ap(predictions, truth, least, closeness=iou):
    """Average precision by class, ActivityNet."""
    results = {}
    for name in classes_of(truth):
        taken, flags = set(), []
        for p in ranked([p for p in predictions if label(p) == name]):
            value, i = max(((closeness(p, g), -i) for i, g in enumerate(truth)
                            if (g.video, label(g)) == (p.video, name)
                            and i not in taken), default=(-math.inf, 0))
            flags.append(value >= least)
            if value >= least:
                taken.add(-i)
        results[name] = area(flags, sum(label(g) == name for g in truth))
    return results


def thumos14_ap(predictions, truth, least):
    """Average precision by class, THUMOS'14."""
    results = {}
    for name in classes_of(truth):
        if name == 'Ambiguous':
            continue
        own = ranked([p for p in predictions if label(p) == name])
        taken = set()
        for g in truth:
            if label(g) != name:
                continue
            best, best_iou = None, -1.
            for i, p in enumerate(own):
                if p.video != g.video or i in taken:
                    continue
                if iou(p, g) > best_iou:
                    best, best_iou = i, iou(p, g)
            if best_iou > least:
                taken.add(best)
        flags = []
        for i, p in enumerate(own):
            unclear = any(label(g) == 'Ambiguous' and g.video == p.video and
                          min(p.end, g.end) > max(p.start, g.start)
                          for g in truth)
            flags.append(True if i in taken else None if unclear else False)
        results[name] = eleven_points(
            flags, sum(label(g) == name for g in truth))
    return results


def start_ap(predictions, truth, offset):
    """Average precision of starts by class."""
    return activitynet_ap(predictions, truth, -offset,
                          lambda p, g: -abs(p.start - g.start))


def f1(predictions, truth, videos, least):
    """F1 of MS-TCN, with its three counts."""
    tp = fp = fn = 0
    for video in videos:
        own = sorted([g for g in truth if g.video == video],
                     key=lambda g: (g.start, g.end))
        hits = [False] * len(own)
        for p in [p for p in predictions if p.video == video]:
            overlaps = [iou(p, g) if label(p) == label(g) else 0. for g in own]
            i = max(range(len(own)), key=lambda i: (overlaps[i], -i),
                    default=None)
            if i is not None and overlaps[i] >= least and not hits[i]:
                hits[i] = True
                tp += 1
            else:
                fp += 1
        fn += hits.count(False)
    return 2 * tp / (2 * tp + fp + fn) if tp + fp + fn else math.nan


def edit(predictions, truth, videos):
    """Mean edit score, by the recursive definition of the distance."""
    scores = []
    for video in videos:
        a, b = (tuple(label(x) for x in sorted(
            [x for x in each if x.video == video],
            key=lambda x: (x.start, x.end, label(x))))
            for each in (predictions, truth))

        @cache
        def distance(i, j, a=a, b=b):
            if not i or not j:
                return i + j
            return min(distance(i - 1, j) + 1, distance(i, j - 1) + 1,
                       distance(i - 1, j - 1) + (a[i - 1] != b[j - 1]))

        longest = max(len(a), len(b))
        scores.append(1 - distance(len(a), len(b)) / longest
                      if longest else 1.)
    return statistics.fmean(scores)


def alarms(predictions, truth, durations):
    """Recall, false alarms per hour, median and 90th percentile of delay."""
    def meet(p, g):
        return (p.video, label(p)) == (g.video, label(g)) and (
            p.start < g.end and g.start < p.end or p.start == g.start)

    delays = [min(p.start for p in predictions if meet(p, g)) - g.start
              for g in truth if any(meet(p, g) for p in predictions)]
    false = sum(not any(meet(p, g) for g in truth) for p in predictions)
    hours = sum(durations.values()) / 3600
    return (len(delays) / len(truth) if truth else math.nan,
            false / hours if hours else math.nan,
            *(np.quantile(delays or [math.nan], q) for q in (.5, .9)))


def calibration(scores, targets, num_bins):
    """ECE and Brier of lists of frames, mean over classes."""
    scores, targets = (np.array([row for video in each for row in video])
                       for each in (scores, targets))
    errors = []
    for p, y in zip(scores.T, targets.T):
        bins = np.minimum((p * num_bins).astype(int), num_bins - 1)
        errors.append(sum(abs((p - y)[bins == k].sum()) / len(p)
                          for k in range(num_bins)))
    return statistics.fmean(errors), ((scores - targets)**2).mean()
