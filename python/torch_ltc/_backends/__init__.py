"""Python backends, the torch.compile backend, and compiled MLIR modules."""
