"""What a training of a reward model says while it runs: the loss, how far it is, and how long it will take."""

import json
import os
import time
from pathlib import Path
from typing import Any

LINE_EVERY = 10.0
"""Seconds between two lines on the screen."""


class Progress:
    """Lines on the screen and in a file.

    Args:
        metrics: file for the numbers of each logged step; None for none.
        name: in front of every line on the screen.
    """

    def __init__(self, metrics: Path | None, name: str) -> None:
        """The clock starts."""
        self._metrics, self._name = metrics, name
        self._began = self._said = time.monotonic()

    @property
    def seconds(self) -> float:
        """Since the beginning."""
        return round(time.monotonic() - self._began, 1)

    def say(self, text: str) -> None:
        """A line, once among all processes of a training."""
        if os.environ.get("RANK", "0") == "0":
            print(f"{self._name}: {text}", flush=True)

    def step(self, step: int, steps: int, loss: float) -> None:
        """Note the loss of a step; say it when some time has passed since the last line, and at the end."""
        if self._metrics is not None and os.environ.get("RANK", "0") == "0":
            self._metrics.parent.mkdir(parents=True, exist_ok=True)
            with self._metrics.open("a", encoding="utf-8") as file:
                file.write(json.dumps({"step": step, "data": {"train/loss": loss}}) + "\n")
        now = time.monotonic()
        if now - self._said >= LINE_EVERY or step >= steps:
            self._said = now
            left = (now - self._began) / max(step, 1) * (steps - step)
            self.say(f"step {step} of {steps}, loss {loss:.3f}, {left:.0f} s left")

    def callback(self) -> Any:
        """The same as a callback of transformers' trainer."""
        from transformers import TrainerCallback

        progress = self

        class Told(TrainerCallback):  # type: ignore[misc,unused-ignore]
            """Passes the loss on."""

            def on_log(self, args: Any, state: Any, control: Any, logs: Any = None, **_: Any) -> None:
                if logs and "loss" in logs:
                    progress.step(state.global_step, state.max_steps, float(logs["loss"]))

        return Told()
