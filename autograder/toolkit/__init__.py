"""What the notebooks import: the model, charts, timing and the labs. Nothing here knows how scores are decided."""
