"""What `scripts/export_onnx.py` is made of: networks as ONNX graphs, and the page that searches with them."""
