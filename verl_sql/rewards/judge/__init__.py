"""The judge: an LLM behind any OpenAI-compatible endpoint that grades SQL which is not right.

`config` says where it is, `prompts` what it is asked, `replies` what counts as an answer, `cache` remembers answers on
disk, `client` asks, and `terms` are the terms of the papers' tables. It is never asked about SQL that executes to the
gold's result.
"""
