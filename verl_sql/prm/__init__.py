"""The process reward model of Reward-SQL (§4.2): its input format, its labels, its training, its scores."""
