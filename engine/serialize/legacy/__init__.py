"""Formats of older PyTorch: archives described by model.json, and the torch.save of before zip files."""
