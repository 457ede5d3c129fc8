"""Training: losses, backward passes, Adam, masking, the loop, fine-tuning
and the toy language. Only the live page imports it, for its examples."""
