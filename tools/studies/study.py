# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Study: rows to train, and claims about them."""
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import yaml

PAPERS = Path(__file__).parent / 'papers'
# Source of claims that the paper does not make.
OURS = 'ours'
# Frames of a clip that a row sees.
VIEWS = ('all', 'middle', 'shuffled')


@dataclass(frozen=True)
class Row:
    """Model of a study, and its figure in the paper.

    Args:
        changes: Changes to the config, by dotted keys. Defaults to none.
        paper: Figure of the paper. Defaults to None.
        config: Config of the row. Defaults to the config of the study.
        view: Frames of a clip: 'all', the 'middle' frame repeated, or all
            frames in 'shuffled' order. Defaults to 'all'.
        shared_start: Start from the initial weights of the study's first row
            where names and shapes agree. False for rows that are about
            initial weights. Defaults to True.
    """
    changes: Mapping[str, Any] = field(default_factory=dict)
    paper: float | None = None
    config: str | None = None
    view: str = 'all'
    shared_start: bool = True

    def __post_init__(self) -> None:
        if self.view not in VIEWS:
            raise ValueError(f'view must be one of {", ".join(VIEWS)}, got '
                             f'{self.view!r}')


class Training(NamedTuple):
    """Settings of one training; the argument of each task's ``train``.

    Attributes:
        config: Config of the row.
        reference: Config that gives its initial weights where names and
            shapes agree, or None.
        folder: Folder of the data.
        seed: Seed of the initial weights and the order of the data.
        rate: Learning rate.
        steps: Number of updates.
        batch_size: Clips or windows per update.
        view: Frames of a clip that the model sees, see ``Row``. Streams have
            only 'all'. Defaults to 'all'.
    """
    config: Mapping[str, Any]
    reference: Mapping[str, Any] | None
    folder: Path
    seed: int
    rate: float
    steps: int
    batch_size: int
    view: str = 'all'


@dataclass(frozen=True)
class Claim:
    """Claim that one row is better than another.

    Args:
        text: The claim in our words.
        better: Name of a row.
        worse: Name of the other row.
        source: Table or section of the paper, or ``OURS``.
        equal: The paper reports the rows as equal instead. Defaults to False.
        metric: Figure of the runs to compare. Defaults to 'score'.
        paper: Difference in the paper. Defaults to the difference of the
            rows' figures.
        worse_metric: Figure of the runs of ``worse``. Defaults to
            ``metric``.
    """
    text: str
    better: str
    worse: str
    source: str
    equal: bool = False
    metric: str = 'score'
    paper: float | None = None
    worse_metric: str | None = None


@dataclass(frozen=True)
class Study:
    """Models and claims of a paper, and the settings of their trainings.

    Args:
        title: Title of the report.
        paper: Address of the paper.
        task: Module of ``tasks`` that trains the runs.
        config: Config that the rows change.
        changes: Changes to the config for all rows. Defaults to none.
        rows: Rows by name. The first row gives its initial weights to the
            other rows, where names and shapes agree.
        claims: Claims to decide.
        steps: Updates per run.
        batch_size: Clips or windows per update.
        rates: Learning rates to try for each row.
        measure: Name of the measure that the paper reports.
        notes: Paragraphs of the report: remarks, and a sentence on each
            disagreement. Defaults to none.
        panels: Panels of the figure that shows scores by distance: the names
            of the rows in each panel, by the title of the panel. Only for
            tasks with ``DISTANCES``. Defaults to none.
    """
    title: str
    paper: str
    task: str
    config: str
    rows: Mapping[str, Row]
    claims: Sequence[Claim]
    steps: int
    batch_size: int
    rates: Sequence[float]
    measure: str
    changes: Mapping[str, Any] = field(default_factory=dict)
    notes: Sequence[str] = ()
    panels: Mapping[str, Sequence[str]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        named = {claim.text: (claim.better, claim.worse)
                 for claim in self.claims}
        for text, rows in {**named, **self.panels}.items():
            for name in rows:
                if name not in self.rows:
                    raise ValueError(f'{text!r} needs row {name!r}, which is '
                                     'not in the study')

    @property
    def reference(self) -> str:
        """Return the row that gives its initial weights to further rows."""
        return next(iter(self.rows))

    def options(self, row: str) -> dict[str, Any]:
        """Return all changes of a row to its config."""
        if self.rows[row].config:
            return dict(self.rows[row].changes)
        return {**self.changes, **self.rows[row].changes}

    def papers_difference(self, claim: Claim) -> float | None:
        """Return the paper's difference for a claim in points, or None."""
        if claim.paper is not None or claim.metric != 'score':
            return claim.paper
        better, worse = (self.rows[name].paper
                         for name in (claim.better, claim.worse))
        if better is None or worse is None:
            return None
        return round(better - worse, 2)

    def config_of(self, row: str) -> str:
        return self.rows[row].config or self.config


def names() -> list[str]:
    """Return the names of all studies."""
    return sorted(path.stem for path in PAPERS.glob('*.yml'))


def load(name: str) -> Study:
    """Load a study by name."""
    content = _as_tuples(
        yaml.safe_load((PAPERS / f'{name}.yml').read_text('utf-8')))
    rows = {row: Row(**body) for row, body in content['rows'].items()}
    claims = [Claim(**claim) for claim in content['claims']]
    return Study(**{**content, 'rows': rows, 'claims': claims})


def _as_tuples(value: Any) -> Any:
    """Replace the lists in a config by tuples."""
    if isinstance(value, dict):
        return {key: _as_tuples(item) for key, item in value.items()}
    if isinstance(value, list):
        return tuple(map(_as_tuples, value))
    return value
