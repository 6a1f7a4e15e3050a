"""Make the CPU default's policy from an SFT parquet: `python -m verl_sql.integration.make_tiny_policy SFT OUT`."""

import argparse
from pathlib import Path

from verl_sql.dataset.parquet import read_rows
from verl_sql.integration.tiny_policy import TinyPolicyShape, build_tiny_policy


def main() -> None:
    """Train the tokenizer on the first conversations of the file, draw the weights, save both."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("sft", type=Path, help="parquet with a column `messages`")
    parser.add_argument("out", type=Path)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--texts", type=int, default=3000, help="conversations the tokenizer is trained on")
    parser.add_argument("--vocab-size", type=int, default=TinyPolicyShape().vocab_size)
    args = parser.parse_args()
    rows = [row["messages"] for row, _ in zip(read_rows(args.sft), range(args.texts), strict=False)]
    texts = ["\n".join(message["content"] for message in messages) for messages in rows]
    parameters = build_tiny_policy(texts, args.out, TinyPolicyShape(vocab_size=args.vocab_size), args.seed)
    print(f"tiny policy: {parameters / 1e6:.2f} M parameters in {args.out}")


if __name__ == "__main__":
    main()
