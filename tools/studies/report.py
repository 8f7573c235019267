# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Report of a study as a page and figures."""
import json
import math
import statistics
from collections.abc import Mapping
from dataclasses import asdict
from datetime import date
from pathlib import Path
from typing import Any

from matplotlib.figure import Figure

from mmvidattn.utils.files import write_atomically
from mmvidattn.utils.paired_test import LEVEL, LOOKS, MARGIN
from mmvidattn.visualization.score_rows import draw_score_rows
from tools.harness import machine, table
from tools.studies.study import OURS, Study
from tools.studies.verdicts import Scores, verdict_of


def make_report(study: Study, metrics: Mapping[str, str],
                limits: Mapping[str, Mapping[str, float]],
                scores: Scores,
                distances: Mapping[str, tuple[int, int]] | None = None
                ) -> dict[str, Any]:
    """Return all figures of the report.

    Args:
        study: Study that was trained.
        metrics: Headings of the reported figures, by the figure's name.
        limits: Figures reached without training ('chance', 'oracle').
        scores: Figures by row and seed.
        distances: Least and most steps since the cue of each figure that
            covers a range of distances, by the figure's name. Defaults to
            none.
    """
    rows = []
    for name, by_seed in scores.items():
        rows.append(dict(
            row=name, paper=study.rows[name].paper,
            rate=next((one['rate'] for one in by_seed.values()), None),
            seeds=len(by_seed),
            metrics={
                key: [by_seed[seed][key] for seed in sorted(by_seed)
                      if key in by_seed[seed]] for key in metrics
            }))
    claims = []
    for claim in study.claims:
        if not {claim.better, claim.worse} <= {*scores}:
            continue
        verdict = verdict_of(claim, scores)
        claims.append(dict(asdict(claim), paper=study.papers_difference(claim),
                           verdict=verdict and asdict(verdict)))
    seconds = [one['seconds'] for by_seed in scores.values()
               for one in by_seed.values()]
    return dict(
        date=str(date.today()), machine=machine(), headings=dict(metrics),
        limits={name: dict(figures) for name, figures in limits.items()},
        distances=dict(distances or {}),
        rows=rows, claims=claims, num_runs=len(seconds),
        median_seconds=statistics.median(seconds) if seconds else None,
        decided=sum(map(_is_decided, claims)))


def _is_decided(claim: dict) -> bool:
    verdict = claim['verdict']
    return verdict is not None and verdict['word'] != 'undecided'


def _count(study: Study, report: dict[str, Any]) -> str:
    """Return a sentence with the number of decided claims."""
    paper = f'of [the paper]({study.paper})'
    ours = [_is_decided(claim) for claim in report['claims']
            if claim['source'] == OURS]
    all_, decided = len(report['claims']), report['decided']
    if len(ours) == all_:
        return f'{decided} of {all_} claims of our own are decided.'
    if not ours:
        return f'{decided} of {all_} claims {paper} are decided.'
    return (f'{decided} of {all_} claims are decided: '
            f'{decided - sum(ours)} of {all_ - len(ours)} {paper}, and '
            f'{sum(ours)} of {len(ours)} of our own.')


def _cell(values: list[float]) -> str:
    if not values:
        return '-'
    mean = f'{statistics.fmean(values):.1f}'
    if len(values) > 1:
        mean += f' ± {statistics.stdev(values):.1f}'
    return mean


def _claim_cells(claim: dict) -> list[str]:
    paper = '-' if claim['paper'] is None else f'{claim["paper"]:+.2f}'
    sign = '=' if claim['equal'] else '>'
    rows = f'`{claim["better"]}` {sign} `{claim["worse"]}`'
    if claim['metric'] != 'score':
        rows += f', {claim["metric"]}'
    if claim['worse_metric']:
        rows += f' and {claim["worse_metric"]}'
    verdict = claim['verdict']
    ours, word, seeds = '-', 'undecided', '0'
    if verdict is not None:
        ours, word = f'{verdict["mean"]:+.1f}', verdict['word']
        seeds = str(verdict['seeds'])
        if verdict['seeds'] > 1:
            ours += f' ± {verdict["half"]:.1f}'
        if word != 'undecided':
            word = f'**{word}**'
        if verdict['difference'] == 'none':
            word += ', no difference'
    return [claim['text'], claim['source'], rows, paper, ours, seeds, word]


def format_report(study: Study, report: dict[str, Any]) -> str:
    """Format the page as Markdown."""
    headings = report['headings']
    lines = [
        f'# {study.title}', '',
        f'Written by `{report["command"]}` ({report["date"]}; '
        f'{report["num_runs"]} runs with a median of '
        f'{report["median_seconds"] or 0:.0f} s of one core, without the '
        f'runs that chose the learning rates; {report["machine"]}). '
        f'[`papers`](../../papers) defines the rows and claims; '
        f'[the page of all studies](../../README.md) describes the training '
        f'data and the rule that decides a claim.', '',
        f'**{_count(study, report)}**', '',
        *table(('claim', 'source', 'rows', 'paper', 'ours', 'seeds',
                'verdict'), map(_claim_cells, report['claims'])), '',
        f'"Paper" is the difference of the paper\'s figures '
        f'({study.measure}). "Ours" is the mean difference over seeds in '
        f'points with its {LEVEL:.1%} interval. Claims are tested after '
        f'{", ".join(map(str, LOOKS[:-1]))} and {LOOKS[-1]} seeds. A claim is '
        f'decided if its interval excludes zero or lies within {MARGIN:g} '
        f'point.', '',
        *(line for note in study.notes for line in (note, '')),
        '![Score of each row and seed](rows.png)', '',
        *(['![Scores by distance](distances.png)', ''] if study.panels
          else [])
    ]
    rows = []
    for row in report['rows']:
        paper = '-' if row['paper'] is None else f'{row["paper"]:.2f}'
        rate = '-' if row['rate'] is None else f'{row["rate"]:g}'
        cells = [f'`{row["row"]}`', paper, rate, str(row['seeds'])]
        rows.append(
            cells + [_cell(row['metrics'][key]) for key in headings])
    for name, figures in report['limits'].items():
        rows.append([name, '-', '-', '-', *(
            f'{figures[key]:.1f}' if key in figures else '-'
            for key in headings)])
    lines += table(('row', 'paper', 'rate', 'seeds', *headings.values()), rows)
    lines += ['', 'Mean and standard deviation over seeds, in percent.']
    return '\n'.join(lines) + '\n'


def by_distance(study: Study, report: dict[str, Any]) -> Figure:
    """Draw panels of the scores by distance: mean and deviation over seeds."""
    distances = report['distances']
    places = [math.sqrt(low * high) for low, high in distances.values()]
    figure = Figure(figsize=(4.2 * len(study.panels), 4.4),
                    layout='constrained')
    panels = figure.subplots(1, len(study.panels), sharey=True, squeeze=False)
    metrics = {row['row']: row['metrics'] for row in report['rows']}
    for axes, (title, rows) in zip(panels[0], study.panels.items()):
        for row in rows:
            scores = [metrics.get(row, {}).get(key, []) for key in distances]
            if all(scores):
                axes.errorbar(
                    places, [statistics.fmean(values) for values in scores],
                    [statistics.pstdev(values) for values in scores],
                    marker='o', markersize=4, capsize=2, label=row)
        chance = report['limits']['chance']
        axes.plot(places, [chance[key] for key in distances], ':',
                  color='gray', label='chance')
        axes.set_xscale('log')
        axes.set_xticks(places, [
            f'{low}-{high}' for low, high in distances.values()],
            fontsize=6)
        axes.minorticks_off()
        axes.set_ylim(0, 103)
        axes.set_title(title, fontsize=10)
        axes.set_xlabel('steps since the cue')
        axes.grid(alpha=0.3)
        axes.legend(fontsize=7, ncols=2, loc='upper center',
                    bbox_to_anchor=(0.5, -0.16))
    panels[0][0].set_ylabel(
        f'{next(iter(report["headings"].values()))}, percent')
    return figure


def write_report(out: Path, study: Study, report: dict[str, Any]) -> str:
    """Write ``report.md``, ``report.json`` and figures; return the page."""
    text = format_report(study, report)
    write_atomically(out / 'report.md', text)
    write_atomically(out / 'report.json', json.dumps(report, indent=1))
    draw_score_rows(
        {row['row']: row['metrics']['score'] for row in report['rows']},
        {name: figures['score'] for name, figures in report['limits'].items()},
        f'{next(iter(report["headings"].values()))}, percent'
    ).savefig(out / 'rows.png', dpi=100)
    if study.panels:
        by_distance(study, report).savefig(out / 'distances.png', dpi=100)
    return text
