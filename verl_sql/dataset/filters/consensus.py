"""The consensus filter of Reasoning-SQL (§4): a gold that two language models both call wrong is dropped.

Each model is asked whether the gold query answers the question, with the whole schema in view. The second one is asked
only where the first says no, since its verdict decides nothing elsewhere: at the price of one question a gold, most of
the time, what is dropped is what both would have flagged. A model that gives no usable reply drops nothing; its
question is named.

The paper removed 1,402 of BIRD train's 9,428 (8,026 kept) with models and words of its own.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from verl_sql.dataset.chats import chat_of
from verl_sql.dataset.example import Example
from verl_sql.dataset.reasons import Finding, Reason
from verl_sql.generation.asked import Asked, AskingError, Unusable
from verl_sql.generation.asking import Ask, Asker
from verl_sql.generation.replies import read_object


@dataclass(frozen=True, slots=True)
class Verdict:
    """What one model says of a gold: whether it answers the question, and why."""

    correct: bool
    reason: str


@dataclass(frozen=True, slots=True)
class Judgement:
    """What both models came to: `right`, `wrong, right`, `wrong, wrong`, `unusable` or `wrong, unusable`."""

    verdicts: tuple[Verdict | Unusable, ...]

    @property
    def word(self) -> str:
        """For counting."""
        return ", ".join(
            "unusable" if isinstance(v, Unusable) else "right" if v.correct else "wrong" for v in self.verdicts
        )

    @property
    def findings(self) -> list[Finding]:
        """A finding when both say wrong, or when a verdict is missing that could have decided."""
        for verdict in self.verdicts:
            if isinstance(verdict, Unusable):
                return [Finding(Reason.UNJUDGED, verdict.why)]
        if len(self.verdicts) < 2 or any(v.correct for v in self.verdicts if isinstance(v, Verdict)):
            return []
        return [Finding(Reason.CONSENSUS, " | ".join(v.reason for v in self.verdicts if isinstance(v, Verdict)))]


class ConsensusFilter:
    """Two judges of golds.

    Args:
        first: the endpoint that is asked about every gold.
        second: the one that is asked where the first says wrong.
        replies: folder of remembered replies; None takes the default.
    """

    def __init__(self, first: Asked, second: Asked, replies: str | None = None) -> None:
        """Ask both for their models' names.

        Raises:
            AskingError: an endpoint lists no model, or both are one and the same.
        """
        self.judges = Asker(first, replies), Asker(second, replies)
        names = [judge.model_name() for judge in self.judges]
        if names[0] == names[1]:
            raise AskingError(f"both judges are {names[0]}: the consensus filter needs two different models")

    def judge(self, asked: Sequence[tuple[Example, str]]) -> list[Judgement]:
        """The judgement about each (example, schema text), in their order.

        Raises:
            AskingError: an endpoint is at fault.
        """
        questions = [_question(example, schema) for example, schema in asked]
        firsts = self.judges[0].ask(questions)
        doubted = [i for i, verdict in enumerate(firsts) if isinstance(verdict, Verdict) and not verdict.correct]
        seconds = dict(zip(doubted, self.judges[1].ask([questions[i] for i in doubted]), strict=True))
        return [Judgement((verdict, seconds[i]) if i in seconds else (verdict,)) for i, verdict in enumerate(firsts)]


def _question(example: Example, schema: str) -> Ask[Verdict]:
    """What a judge is asked."""
    chat = chat_of(
        "consensus_judge",
        schema=schema,
        question=example.question,
        evidence=example.evidence,
        sql=example.gold_sql,
    )
    return Ask(chat, read_verdict)


def read_verdict(reply: str) -> Verdict:
    """The verdict in a reply.

    Raises:
        UnusableReply: it is not of the form that was asked for.
    """
    found = read_object(reply, {"reason": str, "correct": bool})
    return Verdict(found["correct"], " ".join(found["reason"].split()))
