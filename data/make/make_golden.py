"""Write data/golden/: logits of the committed model as `transformers` computes them, for tests without PyTorch.

    python data/make/make_golden.py

Needs PyTorch and transformers. Run it again whenever the model changes; the tests compare the checksum.
Short prompts have the logits of every position; long ones those of some, so that the file stays small.
"""

from __future__ import annotations

import hashlib
import json
import re

import torch
import transformers
from safetensors.torch import save_file
from train_tokenizer import DATA, N_CTX, N_VOCAB, split_text

MODEL, GOLDEN = DATA / "tiny-gpt2", DATA / "golden"
N_NEW = 50


def prompts(tokenizer: transformers.PreTrainedTokenizerFast) -> dict[str, list[int]]:
    """Token ids by name: written text and random ids, from one token to the context limit."""
    _, held_out = split_text((DATA / "tinyshakespeare.txt").read_text(encoding="utf-8"))
    text = tokenizer(held_out, verbose=False)["input_ids"]
    random = torch.randint(N_VOCAB, (N_CTX,), generator=torch.Generator().manual_seed(1)).tolist()
    return {
        "one token": tokenizer("\n")["input_ids"],
        "end of text": [N_VOCAB - 1],
        "a speech": tokenizer("ROMEO:\nBut soft, what light")["input_ids"],
        "twelve random ids": random[:12],
        "64 tokens": text[1000:1064],
        "200 tokens": text[2000:2200],
        "one before the limit": text[3000 : 3000 + N_CTX - 1],
        "at the limit": text[4000 : 4000 + N_CTX],
        "random ids at the limit": random,
    }


def main() -> None:
    tokenizer = transformers.AutoTokenizer.from_pretrained(MODEL)
    model = transformers.GPT2LMHeadModel.from_pretrained(MODEL, dtype=torch.float32).eval()
    cases, tensors = [], {}
    for name, ids in prompts(tokenizer).items():
        n_seq = len(ids)
        rows = list(range(n_seq)) if n_seq <= 16 else sorted({0, 1, 2, n_seq // 3, n_seq // 2, n_seq - 2, n_seq - 1})
        with torch.no_grad():
            logits = model(torch.tensor([ids])).logits[0, rows]  # [n_rows, n_vocab]
        tensors[name] = logits.contiguous()
        cases.append({"name": name, "token_ids": ids, "rows": rows})

    prompt = tokenizer("First Citizen:\n")["input_ids"]
    generated = model.generate(
        torch.tensor([prompt]),
        attention_mask=torch.ones(1, len(prompt)),
        max_new_tokens=N_NEW,
        do_sample=False,
        eos_token_id=None,
        pad_token_id=N_VOCAB - 1,
    )
    GOLDEN.mkdir(exist_ok=True)
    save_file(tensors, GOLDEN / "logits.safetensors")
    record = {
        "made_by": f"transformers {transformers.__version__}, torch {torch.__version__}",
        "model_sha256": hashlib.sha256((MODEL / "model.safetensors").read_bytes()).hexdigest(),
        "greedy": {"token_ids": prompt, "new_ids": generated[0, len(prompt) :].tolist()},
        "cases": cases,
    }
    lists_on_one_line = re.sub(r"\[[\d,\s]*\]", lambda m: " ".join(m[0].split()), json.dumps(record, indent=1))
    (GOLDEN / "golden.json").write_text(lists_on_one_line + "\n")


if __name__ == "__main__":
    main()
