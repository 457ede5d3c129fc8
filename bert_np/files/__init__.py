"""Checkpoints: where they come from, and how they are read and saved."""
