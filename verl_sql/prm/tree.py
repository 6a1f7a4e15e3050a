"""The tree of step prefixes under one question, and what is known of each prefix (Reward-SQL §4.2).

Every chain that was sampled runs through the prefixes of its steps, and is one completion of each of them: a prefix
that many chains share needs few completions of its own. A step is wrong if every completion from its prefix fails;
beyond a wrong step nothing is explored.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from verl_sql.sqltext.chain import Chain

Cut = Callable[[str, int], int]
"""(completion, end of a step) -> where completions of that prefix begin, at or before the end; see `cutting`."""


@dataclass(slots=True)
class Prefix:
    """A prefix of a completion that ends with a whole step.

    Attributes:
        text: the completion up to the step's end.
        depth: steps in it.
        tried: completions from here that were judged, those of sampled chains included.
        right: those of them whose SQL is right.
        kept: the beginning of `text` that a completion is sampled from.
        whole: it is a whole query without CTE, so there is nothing to complete.
    """

    text: str
    depth: int
    tried: int = 0
    right: int = 0
    kept: str = ""
    whole: bool = False

    @property
    def value(self) -> float:
        """Share of right completions."""
        return self.right / self.tried if self.tried else 0.0

    def label(self, enough: int) -> int | None:
        """1 if a completion was right, 0 if `enough` failed, None if it is not known."""
        if self.right:
            return 1
        return 0 if self.whole or self.tried >= enough else None


@dataclass(slots=True)
class SampledChain:
    """A distinct chain of a question.

    Attributes:
        completion: the policy's text up to the end of its SQL.
        chain: its SQL, split.
        right: whether its result is the gold's.
        times: how often it was sampled.
        prefixes: those of its steps, in order.
    """

    completion: str
    chain: Chain
    right: bool
    times: int
    prefixes: list[Prefix] = field(default_factory=list)

    def labels(self, enough: int) -> list[int | None]:
        """A label a step; None from the first unknown step on, and behind the first wrong one."""
        found: list[int | None] = []
        for prefix in self.prefixes:
            going_on = not found or found[-1] == 1
            found.append(prefix.label(enough) if going_on else None)
        return found


class PrefixTree:
    """All prefixes of one question's chains."""

    def __init__(self) -> None:
        """No chain yet."""
        self._known: dict[str, Prefix] = {}
        self.chains: list[SampledChain] = []

    def add(self, sampled: SampledChain, ends: Sequence[int], cut: Cut) -> None:
        """Add a distinct chain; `ends` are the ends of its steps in the completion, `cut` says where to go on from."""
        for depth, end in enumerate(ends, 1):
            text = sampled.completion[:end]
            if text not in self._known:
                kept = text[: cut(sampled.completion, end)]
                self._known[text] = Prefix(text, depth, kept=kept, whole=not sampled.chain.has_ctes)
            prefix = self._known[text]
            prefix.tried += sampled.times
            prefix.right += sampled.times * sampled.right
            sampled.prefixes.append(prefix)
        self.chains.append(sampled)

    def open_prefixes(self, depth: int, enough: int, exact: bool) -> Iterator[Prefix]:
        """Prefixes of `depth` steps that want more completions: their own step is not known to be wrong or, unless
        `exact` values are asked for, right, and every step before is right."""
        seen: set[str] = set()
        for sampled in self.chains:
            if len(sampled.prefixes) < depth:
                continue
            before, prefix = sampled.prefixes[: depth - 1], sampled.prefixes[depth - 1]
            wanted = prefix.tried < enough and not prefix.whole and (exact or not prefix.right)
            if wanted and prefix.text not in seen and all(p.label(enough) == 1 for p in before):
                seen.add(prefix.text)
                yield prefix
