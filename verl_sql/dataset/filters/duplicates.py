"""Examples that say again what an earlier one said."""

from verl_sql.dataset.example import Example
from verl_sql.dataset.reasons import Finding, Reason


class DuplicateFilter:
    """Remembers (database, question, gold) of what it has seen, without regard to case and white space of the question
    and of the gold's ends; one filter for all examples that must not repeat each other."""

    def __init__(self) -> None:
        """Nothing seen yet."""
        self._seen: dict[int, str] = {}

    def findings(self, example: Example) -> list[Finding]:
        """A finding that names the earlier example's id, or none; the example counts as seen afterwards."""
        question = " ".join(example.question.casefold().split())
        key = hash((example.db_id, question, example.gold_sql.rstrip("; \t\r\n")))
        earlier = self._seen.setdefault(key, f"{example.split}/{example.question_id}")
        same = earlier == f"{example.split}/{example.question_id}"
        return [] if same else [Finding(Reason.DUPLICATE, f"same as {earlier}")]
