"""Training of the checkpoints that are compared: GRPO with the aggregation rule as the one thing that differs."""
