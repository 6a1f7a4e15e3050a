"""The KL loss's coefficient by training step (ReToolSQL: 0.005 from step 0, 0.001 from step 40, 0 from step 80).

+algorithm.kl_schedule=[[0,0.005],[40,0.001],[80,0.0]]
"""

from dataclasses import dataclass
from itertools import pairwise
from typing import Any


@dataclass(frozen=True, slots=True)
class KLSchedule:
    """Pairs (first step, coefficient), the steps rising; verl's first training step is 1."""

    stages: tuple[tuple[int, float], ...]

    @classmethod
    def from_config(cls, stages: Any) -> "KLSchedule":
        """Read `algorithm.kl_schedule`.

        Raises:
            ValueError: no pairs, steps that do not rise, a first step after 1, or a negative coefficient.
        """
        try:
            read = tuple((int(step), float(coefficient)) for step, coefficient in stages)
        except (TypeError, ValueError) as error:
            raise ValueError(f"algorithm.kl_schedule must be pairs [step, coefficient], got {stages}") from error
        if not read or read[0][0] > 1:
            raise ValueError("algorithm.kl_schedule must begin at step 0 or 1")
        if any(later[0] <= earlier[0] for earlier, later in pairwise(read)):
            raise ValueError(f"the steps of algorithm.kl_schedule must rise: {[step for step, _ in read]}")
        if any(coefficient < 0 for _, coefficient in read):
            raise ValueError("algorithm.kl_schedule has a negative coefficient")
        return cls(read)

    def at(self, step: int) -> float:
        """The coefficient in force at training step `step` (from 1)."""
        return [coefficient for first, coefficient in self.stages if first <= step][-1]
