# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""What a study is: rows to train, and claims about them."""
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

PAPERS = Path(__file__).parent / 'papers'
# Where a claim is from that no paper makes.
OURS = 'not of the paper'
# The frames of a clip that a row sees.
VIEWS = ('all', 'middle', 'shuffled')


@dataclass(frozen=True)
class Row:
    """A model to train.

    Args:
        changes: What it changes in the study's config, by dotted keys.
        paper: The paper's figure, or None.
        config: Another config than the study's.
        view: Of clips: 'all' frames, the 'middle' one, again and again, or
            all of them in 'shuffled' order.
        own_start: Whether its initial weights are what it is about, so that
            it does not take those of the study's first row.
    """
    changes: Mapping[str, Any] = field(default_factory=dict)
    paper: float | None = None
    config: str | None = None
    view: str = 'all'
    own_start: bool = False

    def __post_init__(self) -> None:
        if self.view not in VIEWS:
            raise ValueError(f'view must be one of {", ".join(VIEWS)}, got '
                             f'{self.view!r}')


@dataclass(frozen=True)
class Claim:
    """A sentence of the paper: one row is better than another.

    Args:
        text: The sentence, in our words.
        better: Name of a row.
        worse: Name of the other row.
        source: Table or section of the paper, or ``OURS``.
        equal: The paper says that they are alike instead.
        metric: Which of a run's figures is compared.
        paper: The difference in the paper, where it is not that of the rows'
            figures.
    """
    text: str
    better: str
    worse: str
    source: str
    equal: bool = False
    metric: str = 'score'
    paper: float | None = None


@dataclass(frozen=True)
class Study:
    """Rows and claims of a paper, and what a run is.

    Args:
        title: Of the report.
        paper: Address of the paper.
        task: The module of ``tasks`` that trains a run.
        config: Config that rows change.
        changes: What all rows change in it.
        rows: By name. The first is what others are paired with: they take its
            initial weights where names and shapes agree.
        claims: What is to be decided.
        steps: Updates of a run.
        batch_size: Clips or windows an update.
        rates: Learning rates that are tried for each row.
        measure: What the paper's figures are.
        notes: Paragraphs of the report: what to keep in mind, and a sentence
            on each disagreement.
        panels: Rows that a picture shows side by side, by distance, under
            the titles of its parts; only of tasks with ``DISTANCES``.
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
                    raise ValueError(f'{text!r} is about row {name!r}, '
                                     'which there is not')

    @property
    def reference(self) -> str:
        """The row that others are paired with."""
        return next(iter(self.rows))

    def options(self, row: str) -> dict[str, Any]:
        """All that a row changes in its config."""
        if self.rows[row].config:
            return dict(self.rows[row].changes)
        return {**self.changes, **self.rows[row].changes}

    def papers_difference(self, claim: Claim) -> float | None:
        """What the paper says of a claim, in points."""
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
    """The studies that there are."""
    return sorted(path.stem for path in PAPERS.glob('*.yml'))


def load(name: str) -> Study:
    """The study of a name.

    Raises:
        ValueError: If there is none.
    """
    if name not in names():
        raise ValueError(f'there is no study {name!r}, but '
                         f'{", ".join(names())}')
    told = _as_tuples(
        yaml.safe_load((PAPERS / f'{name}.yml').read_text('utf-8')))
    rows = {row: Row(**told_row) for row, told_row in told['rows'].items()}
    claims = [Claim(**claim) for claim in told['claims']]
    return Study(**{**told, 'rows': rows, 'claims': claims})


def _as_tuples(value: Any) -> Any:
    """Replace the lists in a config by tuples."""
    if isinstance(value, dict):
        return {key: _as_tuples(item) for key, item in value.items()}
    if isinstance(value, list):
        return tuple(map(_as_tuples, value))
    return value
