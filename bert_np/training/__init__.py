"""Training: losses, backward passes, Adam, masking, the loop, and the
toy language. Nothing outside this folder imports it."""
