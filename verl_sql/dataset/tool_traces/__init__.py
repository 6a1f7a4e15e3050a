"""Conversations with tool calls to warm a policy up on (ReToolSQL): of a script, or of a model that sees the gold."""
