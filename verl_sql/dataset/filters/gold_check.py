"""Everything that can be learnt about golds by running or compiling them, for a batch of examples at a time."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from verl_sql.database.execution import Execution
from verl_sql.database.executor import Executor, Pair
from verl_sql.database.introspect import DatabaseSchema
from verl_sql.dataset.compiling import CompileCheck
from verl_sql.dataset.example import TEXT2SQL, Example
from verl_sql.dataset.filters.gold import gold_findings
from verl_sql.dataset.filters.row_order import RowOrderCheck
from verl_sql.dataset.filters.ties import TieProbe, tie_probes
from verl_sql.dataset.filters.volatile import volatile_findings
from verl_sql.dataset.gold_record import GoldRecord
from verl_sql.dataset.reasons import Finding, Reason

UNDETERMINED = frozenset(
    (
        *(Reason.TIME_DEPENDENT, Reason.IMPLICIT_TIME, Reason.RANDOM),
        *(Reason.TIED_LIMIT, Reason.NESTED_TIE, Reason.UNORDERED_LIMIT),
    )
)
"""Reasons for which a gold's result is not determined whatever the order of rows."""


class GoldCheck:
    """Runs golds where there is a database, compiles them where there is only a schema, and reads their text.

    Args:
        executor: runs the golds.
        backwards: runs them with `Limits(backwards=True)`.
        timeout: seconds a gold may run.
        slow_seconds: seconds above which it counts as slow.
        schemas: db_id -> schema, from a `tables.json`, for questions whose database is not there.
    """

    def __init__(
        self,
        executor: Executor,
        backwards: Executor,
        timeout: float,
        slow_seconds: float,
        schemas: Mapping[str, DatabaseSchema],
    ) -> None:
        """Nothing is run yet."""
        self.row_order = RowOrderCheck(executor, backwards, timeout)
        self.executor = executor
        self.timeout = timeout
        self.slow_seconds = slow_seconds
        self.compiling = CompileCheck(schemas)
        self.record = GoldRecord(timeout)

    def findings(self, located: Sequence[tuple[Path | None, Example]]) -> list[list[Finding]]:
        """For each (database file or None, example) what its gold has against it."""
        runnable = [(path, example.gold_sql) for path, example in located if path is not None]
        results = self.executor.execute_many(runnable, timeout=self.timeout, digest=True)
        for (database, gold), execution in zip(runnable, results, strict=True):
            self.record.note(database, gold, execution)
        executions = iter(results)
        ran = [(path, next(executions) if path is not None else None, example) for path, example in located]
        ties = self._ties(ran)
        found = [
            [*self._executed(outcome, example), *_volatile(example), *tied]
            for (_, outcome, example), tied in zip(ran, ties, strict=True)
        ]
        return self._with_row_order(ran, found)

    def _with_row_order(
        self, ran: Sequence[tuple[Path | None, Execution | None, Example]], found: list[list[Finding]]
    ) -> list[list[Finding]]:
        """The findings, and for golds that nothing else makes undetermined what running them backwards says."""
        open_ones = [
            (i, (path, example.gold_sql, execution))
            for i, (path, execution, example) in enumerate(ran)
            if path is not None and execution is not None and UNDETERMINED.isdisjoint(f.reason for f in found[i])
        ]
        for (i, _), more in zip(open_ones, self.row_order.findings([one for _, one in open_ones]), strict=True):
            found[i] += more
        return found

    def _executed(self, execution: Execution | None, example: Example) -> list[Finding]:
        """What running or compiling one gold says."""
        if execution is not None:
            return gold_findings(execution, self.slow_seconds)
        if example.ability != TEXT2SQL:
            return []
        return self.compiling.findings(example)

    def _ties(self, ran: Sequence[tuple[Path | None, Execution | None, Example]]) -> list[list[Finding]]:
        """For each example, the LIMITs of its gold whose cut is not determined."""
        probes: list[tuple[int, TieProbe]] = []
        pairs: list[Pair] = []
        for number, (path, execution, example) in enumerate(ran):
            if path is not None and execution is not None and execution.ok:
                for probe in tie_probes(example.gold_sql, len(execution.columns)):
                    probes.append((number, probe))
                    pairs.append(Pair(path, probe.upwards, probe.downwards))
        found: list[list[Finding]] = [[] for _ in ran]
        compared = self.executor.compare_many(pairs, comparators=("bag",), timeout=self.timeout)
        for (number, probe), comparison in zip(probes, compared, strict=True):
            if comparison.gold.ok and comparison.pred.ok and not comparison.values["bag"]:
                found[number].append(Finding(probe.reason))
        return found


def _volatile(example: Example) -> list[Finding]:
    """Clock and random findings, where the gold is SQL."""
    return volatile_findings(example.gold_sql) if example.ability == TEXT2SQL else []
