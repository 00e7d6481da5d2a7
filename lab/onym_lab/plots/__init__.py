"""Pictures of results: pure functions from frames to a :class:`Plot`.

Every picture has the numbers behind it in ``Plot.data`` and says in ``Plot.caption``
what it shows; :func:`save` writes SVG, PNG and CSV. Colours can be told apart with
any common colour blindness, and series differ in marker or line as well.
"""

from onym_lab.plots.curves import hops, levels, means
from onym_lab.plots.effects import diagnostics, shares
from onym_lab.plots.nodes import overview
from onym_lab.plots.style import Plot, save
from onym_lab.plots.topology import layout, rates
from onym_lab.plots.transfers import bars, cdf

__all__ = [
    "Plot",
    "bars",
    "cdf",
    "diagnostics",
    "hops",
    "layout",
    "levels",
    "means",
    "overview",
    "rates",
    "save",
    "shares",
]
