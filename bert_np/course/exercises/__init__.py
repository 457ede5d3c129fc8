"""The exercises, a module for each chapter."""
