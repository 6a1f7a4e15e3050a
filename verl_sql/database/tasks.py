"""What a worker is asked to do: run one query, or run a gold and a predicted query and compare them.

Tasks and answers are plain tuples, for they cross a pipe. An answer starts with the task's index in its message.
"""

import time
from collections.abc import Callable
from typing import Any

from verl_sql.database.comparators import (
    ResultView,
    compare_results,
    failed_values,
    order_matters,
    results_equal,
    suite_sql,
)
from verl_sql.database.digest import result_digest
from verl_sql.database.results import ERROR, OK, TOO_LARGE, Result
from verl_sql.database.runner import Runner
from verl_sql.database.wire import COMPARING, GOLD, PRED

QUICK_BYTES, QUICK_NAMES = 1 << 20, frozenset(("bird_set", "bag", "ordered"))
"""Results below this size are compared by these in milliseconds: no deadline is set for that."""

RUN, COMPARE = 0, 1
"""Task kinds: (RUN, path, sql, timeout, keep_rows, digest, assumed) and
(COMPARE, path, gold, pred, variants, names, timeout, assumed).

`assumed` is a tuple of (side, status, message): what a side is known to come to because it killed a worker before.
"""

LASTING = 4
"""Where a COMPARE answer says whether it would come out the same again: no clock, no chance, nothing assumed."""


class VariantFault(Exception):
    """A variant database is at fault."""

    def __init__(self, result: Result) -> None:
        """With the result that says so."""
        super().__init__(result.message)
        self.result = result


class TaskRunner:
    """Carries tasks out on a Runner and tells the board what it is at.

    Args:
        limits: the fields of `limits.Limits`.
        enter: called with (index, side, deadline) before anything that may take long; a deadline of 0 is none.
    """

    def __init__(self, limits: dict[str, Any], enter: Callable[[int, int, float], None]) -> None:
        """Ready for the first message."""
        self._limits = limits
        self._enter = enter
        self._index = 0
        self._side = PRED
        self._assumed: dict[int, Result] = {}
        self.runner = Runner(limits, self._watch)

    def _watch(self, deadline: float) -> None:
        """Tell the board that a query starts."""
        self._enter(self._index, self._side, deadline)

    def do(self, index: int, task: tuple[Any, ...]) -> tuple[Any, ...]:
        """Carry one task out; the answer."""
        self._index = index
        self._assumed = {side: Result(status, message) for side, status, message in task[-1]}
        return self._run(index, task) if task[0] == RUN else self._compare(index, task)

    def _run(self, index: int, task: tuple[Any, ...]) -> tuple[Any, ...]:
        """(index, execution)."""
        _, path, sql, timeout, keep_rows, digest, _ = task
        result = self._query(PRED, path, sql, timeout)
        if not keep_rows and not digest:
            return index, result.wire()
        if COMPARING in self._assumed:
            return index, self._assumed[COMPARING].wire()
        self._enter(index, COMPARING, time.monotonic() + self._limits["compare_seconds"])
        text = result_digest(result.rows) if digest and result.status == OK else ""
        return index, result.wire_with(keep_rows, self._limits["keep_bytes"], text)

    def _query(self, side: int, path: str, sql: str, timeout: float) -> Result:
        """Run one side's query, unless it is known what that comes to."""
        if self._assumed and side in self._assumed:
            return self._assumed[side]
        self._side = side
        return self.runner.run(path, sql, timeout)

    def _compare(self, index: int, task: tuple[Any, ...]) -> tuple[Any, ...]:
        """(index, gold execution, pred execution, values, whether it would come out the same again)."""
        _, path, gold_sql, pred_sql, variants, names, timeout, _ = task
        gold = self._query(GOLD, path, gold_sql, timeout)
        pred = self._query(PRED, path, pred_sql, timeout)
        if gold.status == OK == pred.status and COMPARING in self._assumed:
            return index, gold.wire(), self._assumed[COMPARING].wire(), failed_values(names, True)
        try:
            values = self._values(gold, pred, names, gold_sql)
            if "test_suite" in names and self._suite_applies(gold, pred, pred_sql):
                values["test_suite"] = float(self._suite(path, gold_sql, pred_sql, variants, timeout))
        except VariantFault as fault:
            return index, fault.result.wire(), pred.wire(), failed_values(names, False)
        except MemoryError:
            self.runner.rest()
            too_large = Result(TOO_LARGE, "comparing the results needs more memory than a worker has")
            return index, gold.wire(), too_large.wire(), failed_values(names, True)
        lasting = not (gold.volatile or pred.volatile or self.runner.tired or self._assumed)
        return index, gold.wire(), pred.wire(), values, lasting

    def _values(self, gold: Result, pred: Result, names: tuple[str, ...], gold_sql: str) -> dict[str, float | None]:
        """What the comparators that look at the queries as written say."""
        if gold.status != OK or pred.status != OK:
            return failed_values(names, gold.status == OK)
        quick = gold.held_bytes + pred.held_bytes < QUICK_BYTES and QUICK_NAMES.issuperset(names)
        deadline = 0.0 if quick else time.monotonic() + self._limits["compare_seconds"]
        self._enter(self._index, COMPARING, deadline)
        return compare_results(
            names, ResultView(gold.columns, gold.rows), ResultView(pred.columns, pred.rows), gold_sql
        )

    def _suite_applies(self, gold: Result, pred: Result, pred_sql: str) -> bool:
        """Whether the test suite has something to run: both queries ran, or the prediction is an error that the suite's
        rewriting (`> =` to `>=`, DISTINCT dropped) may mend."""
        return gold.status == OK and (pred.status == OK or (pred.status == ERROR and suite_sql(pred_sql) != pred_sql))

    def _suite(self, path: str, gold_sql: str, pred_sql: str, variants: tuple[str, ...], timeout: float) -> bool:
        """Whether the rewritten queries agree on the database and on every variant of it."""
        gold_text, pred_text, ordered = suite_sql(gold_sql), suite_sql(pred_sql), order_matters(gold_sql)
        return all(
            self._suite_on(database, gold_text, pred_text, ordered, timeout)
            for database in (path, *(variant for variant in variants if variant != path))
        )

    def _suite_on(self, path: str, gold_text: str, pred_text: str, ordered: bool, timeout: float) -> bool:
        """Whether the rewritten queries agree on one database; a query that fails agrees with nothing."""
        gold = self._query(GOLD, path, gold_text, timeout)
        if gold.data_fault:
            raise VariantFault(gold)
        if gold.status != OK:
            return False
        pred = self._query(PRED, path, pred_text, timeout)
        if pred.status != OK:
            return False
        self._enter(self._index, COMPARING, time.monotonic() + self._limits["compare_seconds"])
        return results_equal(gold.rows, pred.rows, ordered)


def broken(index: int, message: str) -> tuple[Any, ...]:
    """The answer to a task that failed for a reason of ours, never of the SQL: (index, None, message)."""
    return index, None, message
