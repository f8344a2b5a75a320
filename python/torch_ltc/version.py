"""Versions this package is made for. Read by setup.py without importing torch."""

VERSION = "0.1.0"

# The backend links libtorch's C++ interfaces, which change with every release:
# the compiled part fits exactly one version.
REQUIRED_TORCH = "2.13.0"
