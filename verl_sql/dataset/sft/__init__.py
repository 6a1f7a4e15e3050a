"""Sets to fine-tune on: chains, verified traces of a model, rejection-sampled rollouts, preference pairs."""
