"""Steps that are captured once and replayed without Python (docs/capture.md)."""
