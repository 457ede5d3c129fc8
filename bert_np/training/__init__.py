"""Training: losses, backward passes, Adam, masking, the loop, and the
toy language. No other part of the library imports it."""
