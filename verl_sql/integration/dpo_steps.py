"""The numbers of each step of a preference training: a line on the screen, and one in verl's file logger's form."""

import json
import time
from pathlib import Path
from typing import Any

from transformers import TrainerCallback, TrainerControl, TrainerState, TrainingArguments

SHOWN = {"loss": "loss", "rewards/accuracies": "pairs told apart", "rewards/margins": "margin"}
LAST = 10


class StepLog(TrainerCallback):
    """Keeps what the trainer logs.

    Args:
        file: gets `{"step": …, "data": {…}}` a line; None for none.
    """

    def __init__(self, file: Path | None) -> None:
        """Begin a new file."""
        self._file, self._began = file, time.monotonic()
        self._steps: list[tuple[int, dict[str, float]]] = []
        if file is not None:
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text("", encoding="utf-8")

    def on_log(
        self,
        args: TrainingArguments,
        state: TrainerState,
        control: TrainerControl,
        logs: dict[str, Any] | None = None,
        **_: Any,
    ) -> None:
        """Keep, write and show the numbers of a step; what the trainer says at the end is no step's."""
        if not state.is_world_process_zero or not logs or "loss" not in logs:
            return
        numbers = {name: float(value) for name, value in logs.items() if _is_number(value)}
        self._steps.append((state.global_step, numbers))
        if self._file is not None:
            with self._file.open("a", encoding="utf-8") as sink:
                data = {f"train/{name}": value for name, value in numbers.items()}
                sink.write(json.dumps({"step": state.global_step, "data": data}) + "\n")
        if state.global_step % 10 == 0 or state.global_step == state.max_steps:
            told = ", ".join(f"{word} {numbers[name]:.3f}" for name, word in SHOWN.items() if name in numbers)
            print(f"step {state.global_step} of {state.max_steps}: {told}", flush=True)

    def summary(self) -> dict[str, float]:
        """Steps, seconds, and loss, accuracy and margin of the first step and of the last `LAST` ones, averaged."""
        found: dict[str, float] = {"steps": self._steps[-1][0] if self._steps else 0}
        found["seconds"] = round(time.monotonic() - self._began, 1)
        for name in SHOWN:
            told = [numbers[name] for _, numbers in self._steps if name in numbers]
            if told:
                short, late = name.rpartition("/")[2], told[-LAST:]
                found |= {f"first_{short}": round(told[0], 4), f"last_{short}": round(sum(late) / len(late), 4)}
        return found


def _is_number(value: Any) -> bool:
    """Whether it is one, as the trainer's logs may also hold texts."""
    try:
        float(value)
    except (TypeError, ValueError):
        return False
    return True
