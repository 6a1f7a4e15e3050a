"""Scores of rendered chains: P(correct) at each step tag, from transformers, from vLLM here, or from a server.

All three read what `encoding` makes of what `rendering` wrote, so a chain has one score wherever it is asked for.
"""

from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any, Protocol

from verl_sql.generation.token_classifier import VllmTokenClassifier
from verl_sql.prm.encoding import encode_many, tag_id
from verl_sql.prm.model import CORRECT, reads_final
from verl_sql.prm.served import ServedPRM

Encoded = tuple[list[int], list[int]]


class StepScorer(Protocol):
    """A reward model that is loaded.

    The classes here also have `score_final`: whether the model wants chains rendered with their final query, as an
    outcome model does, or a process reward model trained with `score_final` (the checkpoint says so).
    """

    def score(self, texts: Sequence[str]) -> list[list[float]]:
        """For each rendered chain P(correct) in [0, 1] at each tag, in order; 0 at a tag that was cut off."""
        ...


class TransformersScorer:
    """The model in this process, in batches of texts of like length.

    Args:
        folder: the reward model.
        batch_tokens: padded tokens that go through it at once.
        device: where it runs; None takes a GPU if there is one.
    """

    def __init__(self, folder: str | Path, batch_tokens: int = 16_384, device: str | None = None) -> None:
        """Load it."""
        import torch
        from transformers import AutoModelForTokenClassification, AutoTokenizer

        self._torch = torch
        self._device = device or ("cuda" if torch.cuda.is_available() else "cpu")
        self._tokenizer = AutoTokenizer.from_pretrained(folder)
        tag_id(self._tokenizer)
        self.score_final = reads_final(folder)
        self._model = AutoModelForTokenClassification.from_pretrained(folder, dtype="float32").to(self._device).eval()
        self._batch_tokens = batch_tokens

    def score(self, texts: Sequence[str]) -> list[list[float]]:
        """See `StepScorer`."""
        encoded = encode_many(self._tokenizer, texts, self._model.config.max_position_embeddings)
        order = sorted(range(len(encoded)), key=lambda i: len(encoded[i][0]))
        scores: list[list[float]] = [[] for _ in encoded]
        for batch in _batches(order, encoded, self._batch_tokens):
            for i, values in zip(batch, self._forward([encoded[i] for i in batch]), strict=True):
                scores[i] = values
        return scores

    def _forward(self, batch: Sequence[Encoded]) -> list[list[float]]:
        """One batch, padded on the right: a causal model does not see the padding."""
        torch = self._torch
        width = max(len(ids) for ids, _ in batch)
        ids = torch.zeros(len(batch), width, dtype=torch.long)
        mask = torch.zeros(len(batch), width, dtype=torch.long)
        for row, (own, _) in enumerate(batch):
            ids[row, : len(own)] = torch.tensor(own)
            mask[row, : len(own)] = 1
        with torch.inference_mode():
            logits = self._model(input_ids=ids.to(self._device), attention_mask=mask.to(self._device)).logits
        correct = logits.float().softmax(-1)[..., CORRECT].cpu()
        return [_at_tags(correct[row], positions) for row, (_, positions) in enumerate(batch)]


class VllmScorer:
    """The model in a vLLM engine in this process.

    Args:
        folder: the reward model.
        engine: further arguments of `vllm.LLM`; without a GPU it wants `dtype="float32"` and `enforce_eager=True`.
    """

    def __init__(self, folder: str | Path, **engine: Any) -> None:
        """Load it."""
        from transformers import AutoTokenizer

        self._tokenizer = AutoTokenizer.from_pretrained(folder)
        tag_id(self._tokenizer)
        self.score_final = reads_final(folder)
        self._classifier = VllmTokenClassifier(str(folder), **engine)

    def score(self, texts: Sequence[str]) -> list[list[float]]:
        """See `StepScorer`."""
        encoded = encode_many(self._tokenizer, texts, self._classifier.max_length)
        tables = self._classifier.probabilities([ids for ids, _ in encoded])
        return [_at_tags(t[:, CORRECT], positions) for t, (_, positions) in zip(tables, encoded, strict=True)]


class EndpointScorer:
    """A vLLM server that serves the model at `/pooling`, or verl's router in front of one.

    Args:
        base_url: `http://host:port`, or verl's router address `host:port`.
        model: its name there; None takes the first that the server lists.
        tokenizer: folder of the model or of its tokenizer.
        options: timeout, tries and concurrency of `served.ServedPRM`.
    """

    def __init__(self, base_url: str, model: str | None = None, *, tokenizer: str | Path, **options: Any) -> None:
        """Read the tokenizer; nothing is sent yet."""
        from transformers import AutoTokenizer

        reads = AutoTokenizer.from_pretrained(tokenizer)
        tag_id(reads)
        self.score_final = (Path(tokenizer) / "config.json").is_file() and reads_final(tokenizer)
        self._served = ServedPRM(base_url if "://" in base_url else f"http://{base_url}", reads, model=model, **options)

    def score(self, texts: Sequence[str]) -> list[list[float]]:
        """See `StepScorer`.

        Raises:
            PRMUnavailable: the server gave no answer after all tries.
        """
        return [list(scores) for scores in self._served.ask_many(texts)]

    async def ascore(self, text: str) -> list[float]:
        """The scores of one text, awaited."""
        return list(await self._served.aask(text))


def _batches(order: Sequence[int], encoded: Sequence[Encoded], tokens: int) -> Iterator[list[int]]:
    """Runs of `order`, which is sorted by length, whose padded size stays within `tokens`; at least one text each."""
    rest = iter(order)
    batch = list(islice(rest, 1))
    for i in rest:
        if len(encoded[i][0]) * (len(batch) + 1) > tokens:
            yield batch
            batch = []
        batch.append(i)
    if batch:
        yield batch


def _at_tags(correct: Any, positions: Sequence[int]) -> list[float]:
    """The values at the tags; 0 for one that was cut off."""
    return [float(correct[at]) if at >= 0 else 0.0 for at in positions]
