"""A real chat model: the Llama architecture's shape, weights and loader, and the model's own tokenizer."""
