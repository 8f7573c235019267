# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
from mmvidattn.visualization.score_curves import draw_score_rows


def test_has_a_dot_per_seed_and_a_line_at_the_mean():
    figure = draw_score_rows(
        {'softmax': [60., 70., 95.], 'linear, $r=0.5$': [80.], 'new': []},
        {'chance': 12.5}, 'top-1 accuracy (%)')
    axes, = figure.axes
    lines = [(line.get_marker(), [*map(float, line.get_xdata())],
              {*map(float, line.get_ydata())}) for line in axes.lines]
    # The first model is at the top, the model without scores at the bottom.
    assert lines == [
        ('o', [], set()), ('o', [80.], {1.}), ('|', [80.], {1.}),
        ('o', [60., 70., 95.], {2.}), ('|', [75.], {2.}),
        ('None', [12.5, 12.5], {0., 1.})]
    assert [label.get_text() for label in axes.get_yticklabels()] == [
        'new', 'linear, $r=0.5$', 'softmax']
    assert axes.get_xlabel() == 'top-1 accuracy (%)'
    assert axes.texts[0].get_text() == 'chance'
    # The name of a model is not parsed as a formula.
    assert not any(label.get_parse_math() for label in axes.get_yticklabels())
