"""Adds this folder and the folder of the built module _shape_testing to sys.path."""

import os
import pathlib
import sys

import torch  # noqa: F401 - loads the libraries that _shape_testing links

sys.path.insert(0, str(pathlib.Path(__file__).parent))
_folder = os.environ.get("TORCH_LTC_SHAPE_TESTING_DIR")
if _folder:
    sys.path.insert(0, _folder)
