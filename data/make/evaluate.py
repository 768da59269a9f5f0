"""Print what the model card of data/tiny-gpt2 says: held-out loss, loss by position, use of positions, a sample.

    python data/make/evaluate.py

Needs PyTorch and transformers. The held-out text is the last tenth, which neither model nor tokenizer has seen.
"""

from __future__ import annotations

import itertools
import math

import torch
import torch.nn.functional as F
import transformers
from torch import Tensor
from train_tokenizer import DATA, N_CTX, split_text

MODEL = DATA / "tiny-gpt2"
BUCKETS = (0, 1, 2, 4, 8, 16, 32, 64, 128, 192, 256, 320, 384, 448, N_CTX)


@torch.no_grad()
def losses(model: transformers.GPT2LMHeadModel, ids: Tensor, stride: int, positions: Tensor | None = None) -> Tensor:
    """Cross-entropy in nats, [n_window, n_ctx], of the windows that begin every `stride` tokens."""
    starts = torch.arange(0, len(ids) - N_CTX, stride)
    rows = []
    for some in starts.split(8):
        windows = ids[some[:, None] + torch.arange(N_CTX + 1)]
        logits = model(windows[:, :-1], position_ids=positions).logits
        flat = F.cross_entropy(logits.flatten(0, 1), windows[:, 1:].flatten(), reduction="none")
        rows.append(flat.view(-1, N_CTX))
    return torch.cat(rows)


def main() -> None:
    tokenizer = transformers.AutoTokenizer.from_pretrained(MODEL)
    model = transformers.GPT2LMHeadModel.from_pretrained(MODEL).eval()
    train, held_out = split_text((DATA / "tinyshakespeare.txt").read_text(encoding="utf-8"))
    ids = torch.tensor(tokenizer(held_out, verbose=False)["input_ids"])
    train_ids = torch.tensor(tokenizer(train, verbose=False)["input_ids"])
    n_character = len(held_out) / len(ids)

    total = losses(model, ids, stride=N_CTX).mean().item()
    full = losses(model, ids, stride=N_CTX // 2)[:, N_CTX // 2 :].mean().item()
    seen = losses(model, train_ids, stride=8 * N_CTX).mean().item()
    print(f"held out, windows of {N_CTX} side by side: {total:.3f} nats a token, {total / n_character:.3f} a character")
    print(f"held out, second halves of windows that overlap by half: {full:.3f} nats a token")
    print(f"training text, every eighth window: {seen:.3f} nats a token; a uniform guess: {math.log(1024):.3f}")

    by_position = losses(model, ids, stride=N_CTX // 4)
    print("\n| position | held-out loss, nats a token |\n|---|---|")
    for i, j in itertools.pairwise(BUCKETS):
        print(f"| {i}{f' to {j - 1}' if j > i + 1 else ''} | {by_position[:, i:j].mean().item():.2f} |")

    half = N_CTX // 2
    reset = torch.cat([torch.arange(half), torch.arange(half)])[None]
    for name, positions in (("as they are", None), ("reset to 0 at 256", reset)):
        loss = losses(model, ids, N_CTX, positions)[:, half : half + 16].mean().item()
        print(f"loss of positions 256 to 271, positions {name}: {loss:.2f}")
    norms = model.transformer.wpe.weight.detach().norm(dim=1)
    print(f"norm of a row of wpe: {norms.min():.2f} to {norms.max():.2f}")

    torch.manual_seed(4)
    prompt = tokenizer("KING RICHARD II:\n", return_tensors="pt")
    sample = model.generate(**prompt, max_new_tokens=200, do_sample=True, temperature=0.8, top_k=50, pad_token_id=1023)
    print("\n" + tokenizer.decode(sample[0]))


if __name__ == "__main__":
    main()
