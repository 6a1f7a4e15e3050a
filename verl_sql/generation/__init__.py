"""Sampling completions: from any OpenAI-compatible endpoint, or with vLLM in this process; one small interface."""
