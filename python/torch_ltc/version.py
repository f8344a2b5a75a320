"""The versions of this package and of torch. setup.py reads this file without importing
torch."""

VERSION = "0.1.0"

# The backend uses libtorch's C++ interfaces, which change with every release, so the
# compiled part supports exactly one version.
REQUIRED_TORCH = "2.13.0"
