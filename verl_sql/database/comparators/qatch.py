"""`qatch`: cell precision, cell recall and tuple cardinality of QATCH, unrounded.

Semantics: with C(R) the SET of all cell values of a result (no multiplicity, no position; `1 == 1.0`, `'1' != 1`),
    cp = |C(P) ∩ C(T)| / |C(P)|,   cr = |C(P) ∩ C(T)| / |C(T)|,   tc = min(|T|/|P|, |P|/|T|) over rows, repeats counted.
Both results empty: all three are 1. One empty: all three are 0. A prediction that fails: 0. A gold that fails: None.

Source: QATCH's metric classes CellPrecision, CellRecall, TupleCardinality; used by Think2SQL (§2.3, Eq. 7 and 8, whose
denominators are exchanged against its text: the code and the prose are followed here).

Pitfalls: cells are compared without their position, so wrong rows built of right values score 1; tc counts repeats,
so a `bird_set` match can have tc below 1.
"""

from itertools import chain
from typing import NamedTuple

from verl_sql.database.comparators.rows import Rows


class Qatch(NamedTuple):
    """The three QATCH measures, each in [0, 1]."""

    cp: float
    cr: float
    tc: float


def qatch(gold_rows: Rows, pred_rows: Rows) -> Qatch:
    """Cell precision, cell recall and tuple cardinality of the predicted result against the gold result."""
    if gold_rows == pred_rows:
        return Qatch(1.0, 1.0, 1.0)
    if not gold_rows or not pred_rows:
        return Qatch(0.0, 0.0, 0.0)
    gold_cells, pred_cells = set(chain.from_iterable(gold_rows)), set(chain.from_iterable(pred_rows))
    shared = len(gold_cells & pred_cells)
    n_gold, n_pred = len(gold_rows), len(pred_rows)
    return Qatch(shared / len(pred_cells), shared / len(gold_cells), min(n_gold / n_pred, n_pred / n_gold))
