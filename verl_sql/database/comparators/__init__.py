"""The comparators by name: pure functions of two results, one file each, light to import for the workers.

`bird_set`, `bag`, `ordered`, `soft_f1` and `qatch` look at the results of the queries as written (`compare_results`).
`test_suite` looks at the results of rewritten queries on every variant of the database: the executor runs them
(`suite_sql`, `order_matters`) and asks `results_equal`.
"""

from collections.abc import Callable, Collection, Iterable

from verl_sql.database.comparators.bag import bag, set_and_bag
from verl_sql.database.comparators.bird_set import bird_set
from verl_sql.database.comparators.ordered import ordered
from verl_sql.database.comparators.qatch import qatch
from verl_sql.database.comparators.rows import ResultView, Row, Rows
from verl_sql.database.comparators.soft_f1 import soft_f1
from verl_sql.database.comparators.test_suite import order_matters, remove_distinct, results_equal, suite_sql

__all__ = [
    "COMPARATORS",
    "VALUE_KEYS",
    "ResultView",
    "Row",
    "Rows",
    "check_comparators",
    "compare_results",
    "failed_values",
    "order_matters",
    "remove_distinct",
    "results_equal",
    "suite_sql",
    "value_keys",
]

Values = dict[str, float | None]

# What each comparator contributes to the values of a comparison, in the order of the output.
VALUE_KEYS: dict[str, tuple[str, ...]] = {
    "bird_set": ("bird_set",),
    "bag": ("bag",),
    "ordered": ("ordered",),
    "test_suite": ("test_suite",),
    "soft_f1": ("soft_f1",),
    "qatch": ("cp", "cr", "tc"),
}

# Those that need nothing but the two results and the gold text.
COMPARATORS: dict[str, Callable[[Rows, Rows, str], Values]] = {
    "bird_set": lambda gold, pred, _: {"bird_set": float(bird_set(gold, pred))},
    "bag": lambda gold, pred, _: {"bag": float(bag(gold, pred))},
    "ordered": lambda gold, pred, sql: {"ordered": float(ordered(gold, pred, sql))},
    "soft_f1": lambda gold, pred, _: {"soft_f1": soft_f1(gold, pred)},
    "qatch": lambda gold, pred, _: dict(qatch(gold, pred)._asdict()),
}


def check_comparators(names: Iterable[str]) -> tuple[str, ...]:
    """The names, each once, in the order of the output; raises ValueError for one that does not exist."""
    wanted = set(names)
    if unknown := wanted - VALUE_KEYS.keys():
        raise ValueError(f"no comparator {', '.join(sorted(unknown))}; there are {', '.join(VALUE_KEYS)}")
    return tuple(name for name in VALUE_KEYS if name in wanted)


def value_keys(names: Iterable[str]) -> tuple[str, ...]:
    """The keys that the values of a comparison have when these comparators were asked for."""
    return tuple(key for name in check_comparators(names) for key in VALUE_KEYS[name])


def compare_results(names: Collection[str], gold: ResultView, pred: ResultView, gold_sql: str) -> Values:
    """The values of every named comparator on two results that both exist.

    Args:
        names: comparators; `test_suite` among them adds nothing here, for its results are of other queries.
        gold: the complete result of the gold query.
        pred: the complete result of the predicted query.
        gold_sql: the gold query as written, which decides for `ordered` whether the order counts.
    """
    values: Values = {}
    if "bag" in names and "bird_set" in names:
        same_set, same_bag = set_and_bag(gold.rows, pred.rows)
        values = {"bird_set": float(same_set), "bag": float(same_bag)}
        names = [name for name in names if name not in values]
    for name in names:
        if name in COMPARATORS:
            values |= COMPARATORS[name](gold.rows, pred.rows, gold_sql)
    return values


def failed_values(names: Iterable[str], gold_ok: bool) -> Values:
    """The values when a query gave no result: nothing matches, and cp, cr, tc are undefined (None) without a gold."""
    qatch_value = 0.0 if gold_ok else None
    return {key: qatch_value if key in VALUE_KEYS["qatch"] else 0.0 for key in value_keys(names)}
