"""What a preparation kept and dropped, and why: counted, and every dropped or flagged example by its id."""

from collections import Counter
from collections.abc import Mapping
from typing import Any

from verl_sql.dataset.prepare import Prepared
from verl_sql.dataset.reasons import Finding, Reason

# What the papers report for comparison (BIRD train, 9,428 questions). Their definitions are their own.
PAPER_COUNTS = {
    "Think2SQL": "kept 9,007 of BIRD train's 9,428 after removing erroneous and duplicate samples",
    "Reasoning-SQL": "kept 8,026 of BIRD train's 9,428 after two LLMs flagged samples as wrong",
}

_THINK2SQL = "Think2SQL: 421 of BIRD train's 9,428 as erroneous or duplicate together"
PAPER_DROPS = {
    Reason.CONSENSUS: "Reasoning-SQL: 1,402 of BIRD train's 9,428",
    Reason.DUPLICATE: _THINK2SQL,
    Reason.GOLD_ERROR: _THINK2SQL,
    Reason.GOLD_UNCOMPILABLE: _THINK2SQL,
}
"""What papers dropped for a reason like it, shown beside our counts of BIRD train."""


class SplitReport:
    """Counts of one split, added to example by example.

    Args:
        unit: what prompts are measured in.
        papers: what papers dropped, by reason.
    """

    def __init__(self, unit: str, papers: Mapping[Reason, str] | None = None) -> None:
        """Nothing seen yet."""
        self.unit = unit
        self.papers = papers or {}
        self.models: dict[str, Counter[str]] = {}
        self.questions = 0
        self.kept = 0
        self.lengths: list[int] = []
        self.difficulty: Counter[str] = Counter()
        self.databases: Counter[str] = Counter()
        self._dropped: dict[Reason, list[dict[str, str]]] = {}
        self._flagged: dict[Reason, list[dict[str, str]]] = {}

    def add(self, prepared: Prepared) -> None:
        """Count one decided example."""
        self.questions += 1
        for topic, answer in prepared.asked:
            self.models.setdefault(topic, Counter())[answer] += 1
        if prepared.dropped:
            self._note(self._dropped, prepared, prepared.dropped)
            return
        self.kept += 1
        self.lengths.append(prepared.prompt_length)
        self.databases[prepared.example.db_id] += 1
        self.difficulty[prepared.example.difficulty or "unlabelled"] += 1
        for finding in prepared.findings:
            self._note(self._flagged, prepared, finding)

    def as_dict(self) -> dict[str, Any]:
        """Everything, for report.json."""
        ordered = sorted(self.lengths)
        return {
            "questions": self.questions,
            "kept": self.kept,
            "dropped": _listed(self._dropped, self.papers),
            "flagged": _listed(self._flagged, {}),
            "models": {topic: dict(sorted(answers.items())) for topic, answers in sorted(self.models.items())},
            "prompt_length": {
                "unit": self.unit,
                "longest": ordered[-1] if ordered else 0,
                "median": ordered[len(ordered) // 2] if ordered else 0,
                "p95": ordered[len(ordered) * 95 // 100] if ordered else 0,
            },
            "difficulty": dict(sorted(self.difficulty.items())),
            "databases": dict(sorted(self.databases.items())),
        }

    @staticmethod
    def _note(table: dict[Reason, list[dict[str, str]]], prepared: Prepared, finding: Finding) -> None:
        """List one example under a finding's reason."""
        entry = {"question_id": prepared.example.question_id, "db_id": prepared.example.db_id}
        table.setdefault(finding.reason, []).append(entry | ({"detail": finding.detail} if finding.detail else {}))


def _listed(table: dict[Reason, list[dict[str, str]]], papers: Mapping[Reason, str]) -> dict[str, Any]:
    """Reason -> count, the paper's where there is one, count by database, and the examples, in the reasons' order."""
    return {
        str(reason): {
            "count": len(table[reason]),
            **({"paper": papers[reason]} if reason in papers else {}),
            "by_database": dict(Counter(entry["db_id"] for entry in table[reason]).most_common()),
            "examples": table[reason],
        }
        for reason in Reason
        if reason in table
    }
