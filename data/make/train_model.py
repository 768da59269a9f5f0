"""Train data/tiny-gpt2: a GPT-2 of 12 blocks, small enough to commit, on data/tinyshakespeare.txt.

    python data/make/train_model.py                 # the committed model: 1,000 steps, 20 minutes on two idle cores
    python data/make/train_model.py --minutes 60    # as many steps as fit into an hour

Needs PyTorch, which nothing else in the repository does. How it is trained:

- Windows of 512 tokens at random offsets, so that every row of `wpe` sees every part of the text; one
  window in eight begins with `<|endoftext|>`.
- Muon (momentum, orthogonalized by a Newton-Schulz iteration) for the matrices inside the blocks and AdamW for
  embeddings, biases and layer norms: on this text it needs several times fewer tokens than AdamW alone.
- A constant learning rate after a short warm-up, then a linear decay to zero over the last part.
- The text is small (411,000 tokens), so dropout and weight decay are on.

What is exported is the weights' exponential moving average. Every export is a complete Hugging Face folder.
"""

from __future__ import annotations

import argparse
import json
import math
import time
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F
from safetensors.torch import save_file
from tokenizers import Tokenizer
from torch import Tensor, nn
from train_tokenizer import DATA, END_OF_TEXT, N_CTX, N_VOCAB, split_text

N_LAYER, N_HEAD, N_EMBD = 12, 4, 128


class Block(nn.Module):
    def __init__(self, dropout: float) -> None:
        super().__init__()
        self.ln_1, self.ln_2 = nn.LayerNorm(N_EMBD), nn.LayerNorm(N_EMBD)
        self.c_attn, self.attn_proj = nn.Linear(N_EMBD, 3 * N_EMBD), nn.Linear(N_EMBD, N_EMBD)
        self.c_fc, self.mlp_proj = nn.Linear(N_EMBD, 4 * N_EMBD), nn.Linear(4 * N_EMBD, N_EMBD)
        self.dropout = dropout

    def forward(self, x: Tensor) -> Tensor:
        """[n_batch, n_seq, n_embd] -> the same shape."""
        n_batch, n_seq, _ = x.shape
        qkv = self.c_attn(self.ln_1(x)).view(n_batch, n_seq, 3, N_HEAD, N_EMBD // N_HEAD)
        q, k, v = qkv.permute(2, 0, 3, 1, 4)  # each [n_batch, n_head, n_seq, head_dim]
        heads = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        merged = heads.transpose(1, 2).reshape(n_batch, n_seq, N_EMBD)
        x = x + F.dropout(self.attn_proj(merged), self.dropout, self.training)
        hidden = F.gelu(self.c_fc(self.ln_2(x)), approximate="tanh")
        return x + F.dropout(self.mlp_proj(hidden), self.dropout, self.training)


class GPT2(nn.Module):
    def __init__(self, dropout: float) -> None:
        super().__init__()
        self.wte, self.wpe = nn.Embedding(N_VOCAB, N_EMBD), nn.Embedding(N_CTX, N_EMBD)
        self.blocks = nn.ModuleList(Block(dropout) for _ in range(N_LAYER))
        self.ln_f = nn.LayerNorm(N_EMBD)
        self.dropout = dropout
        for name, p in self.named_parameters():
            if name.endswith("bias"):
                nn.init.zeros_(p)
            elif p.ndim == 2:
                nn.init.normal_(p, std=0.02 / math.sqrt(2 * N_LAYER) if "_proj" in name else 0.02)

    def forward(self, ids: Tensor) -> Tensor:
        """[n_batch, n_seq] -> logits [n_batch, n_seq, n_vocab]."""
        x = self.wte(ids) + self.wpe.weight[: ids.shape[1]]
        x = F.dropout(x, self.dropout, self.training)
        for block in self.blocks:
            x = block(x)
        return F.linear(self.ln_f(x), self.wte.weight)

    def loss(self, ids: Tensor, targets: Tensor) -> Tensor:
        """Mean cross-entropy in nats a token."""
        return F.cross_entropy(self(ids).float().flatten(0, 1), targets.flatten())


def orthogonalize(g: Tensor, n_iteration: int = 5) -> Tensor:
    """The nearest semi-orthogonal matrices to g [..., rows, columns], roughly (quintic Newton-Schulz)."""
    a, b, c = 3.4445, -4.7750, 2.0315
    wide = g.shape[-2] <= g.shape[-1]
    x = g if wide else g.mT
    x = x / (x.norm(dim=(-2, -1), keepdim=True) + 1e-7)
    for _ in range(n_iteration):
        square = x @ x.mT
        x = a * x + (b * square + c * square @ square) @ x
    return x if wide else x.mT


class Muon(torch.optim.Optimizer):
    """Momentum, orthogonalized, for matrices [n_out, n_in]; those of one shape are done as one batch."""

    def __init__(self, params: list[nn.Parameter], lr: float, momentum: float, weight_decay: float) -> None:
        super().__init__(params, {"lr": lr, "momentum": momentum, "weight_decay": weight_decay})

    @torch.no_grad()
    def step(self, closure: None = None) -> None:
        for group in self.param_groups:
            by_shape: dict[torch.Size, list[tuple[nn.Parameter, Tensor]]] = {}
            for p in group["params"]:
                state = self.state[p]
                if not state:
                    state["momentum"] = torch.zeros_like(p)
                state["momentum"].lerp_(p.grad, 1 - group["momentum"])
                update = p.grad.lerp(state["momentum"], group["momentum"])
                if p.shape[0] == 3 * N_EMBD:  # c_attn: queries, keys and values are three matrices
                    update = update.view(3, N_EMBD, N_EMBD)
                by_shape.setdefault(update.shape, []).append((p, update))
            for entries in by_shape.values():
                updates = orthogonalize(torch.stack([update for _, update in entries]))
                scale = max(1.0, updates.shape[-2] / updates.shape[-1]) ** 0.5
                for (p, _), update in zip(entries, updates, strict=True):
                    p.mul_(1 - group["lr"] * group["weight_decay"])
                    p.add_(update.reshape(p.shape), alpha=-group["lr"] * scale)


def make_optimizers(model: GPT2, args: argparse.Namespace) -> list[torch.optim.Optimizer]:
    matrices = [p for p in model.blocks.parameters() if p.ndim == 2]
    vectors = [p for p in model.parameters() if p.ndim == 1]
    embeddings = [model.wte.weight, model.wpe.weight]
    adam = torch.optim.AdamW(
        [
            {"params": embeddings, "weight_decay": args.weight_decay},
            {"params": vectors, "weight_decay": 0.0},
        ],
        lr=args.adam_lr,
        betas=(0.9, 0.98),
        fused=True,
    )
    muon = Muon(matrices, lr=args.muon_lr, momentum=0.95, weight_decay=args.weight_decay)
    for optimizer in (adam, muon):
        for group in optimizer.param_groups:
            group["peak_lr"] = group["lr"]
    return [adam, muon]


def batch(ids: Tensor, step: int, args: argparse.Namespace) -> tuple[Tensor, Tensor]:
    """Inputs and targets [n_batch, n_ctx] of one step: a function of the seed and the step alone."""
    rng = np.random.default_rng([args.seed, step])
    starts = torch.from_numpy(rng.integers(0, len(ids) - N_CTX, size=args.batch))
    windows = ids[starts[:, None] + torch.arange(N_CTX + 1)]
    inputs, targets = windows[:, :-1].clone(), windows[:, 1:]
    inputs[torch.from_numpy(rng.random(args.batch) < 1 / 8), 0] = N_VOCAB - 1
    return inputs, targets


@torch.no_grad()
def losses(model: GPT2, ids: Tensor, stride: int) -> Tensor:
    """Cross-entropy in nats, [n_window, n_ctx], of windows that begin every `stride` tokens."""
    model.eval()
    rows = []
    starts = torch.arange(0, len(ids) - N_CTX, stride)
    for some in starts.split(16):
        windows = ids[some[:, None] + torch.arange(N_CTX + 1)]
        logits = model(windows[:, :-1])
        rows.append(F.cross_entropy(logits.mT, windows[:, 1:], reduction="none"))
    model.train()
    return torch.cat(rows)


def hugging_face_tensors(model: GPT2) -> dict[str, Tensor]:
    """The weights under GPT-2's names and in its layout: a block's matrices are [n_in, n_out]."""
    renamed = {}
    for name, p in model.state_dict().items():
        name = name.replace("blocks.", "h.").replace(".c_attn", ".attn.c_attn").replace(".attn_proj", ".attn.c_proj")
        name = name.replace(".c_fc", ".mlp.c_fc").replace(".mlp_proj", ".mlp.c_proj")
        transpose = name.startswith("h.") and p.ndim == 2
        renamed[f"transformer.{name}"] = (p.mT if transpose else p).detach().float().contiguous()
    return renamed


def export(model: GPT2, folder: Path, record: dict) -> None:
    """Write config.json, model.safetensors and training.json, each in one move."""
    folder.mkdir(parents=True, exist_ok=True)
    config = {
        "architectures": ["GPT2LMHeadModel"],
        "model_type": "gpt2",
        "activation_function": "gelu_new",
        "n_layer": N_LAYER,
        "n_head": N_HEAD,
        "n_embd": N_EMBD,
        "n_inner": None,
        "n_positions": N_CTX,
        "n_ctx": N_CTX,
        "vocab_size": N_VOCAB,
        "layer_norm_epsilon": 1e-5,
        "initializer_range": 0.02,
        "attn_pdrop": 0.0,
        "embd_pdrop": model.dropout,
        "resid_pdrop": model.dropout,
        "scale_attn_weights": True,
        "scale_attn_by_inverse_layer_idx": False,
        "reorder_and_upcast_attn": False,
        "tie_word_embeddings": True,
        "bos_token_id": N_VOCAB - 1,
        "eos_token_id": N_VOCAB - 1,
        "torch_dtype": "float32",
    }
    save_file(hugging_face_tensors(model), folder / "model.tmp", metadata={"format": "pt"})
    (folder / "model.tmp").replace(folder / "model.safetensors")
    for name, content in (("config.json", config), ("training.json", record)):
        (folder / "file.tmp").write_text(json.dumps(content, indent=2) + "\n")
        (folder / "file.tmp").replace(folder / name)


def learning_rate(step: int, args: argparse.Namespace) -> float:
    """The factor on the peak rates: warm-up, constant, linear decay from decay_from to zero at steps."""
    if step < args.decay_from:
        return min(1.0, (step + 1) / args.warmup)
    return max(0.0, (args.steps - step) / (args.steps - args.decay_from))


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Train data/tiny-gpt2.")
    parser.add_argument("--steps", type=int, default=1000)
    parser.add_argument("--decay-from", type=int, default=600)
    parser.add_argument("--minutes", type=float, help="choose steps and decay-from to end after so long")
    parser.add_argument("--batch", type=int, default=8, help="windows of 512 tokens a step")
    parser.add_argument("--warmup", type=int, default=50)
    parser.add_argument("--muon-lr", type=float, default=0.02)
    parser.add_argument("--adam-lr", type=float, default=0.004)
    parser.add_argument("--weight-decay", type=float, default=0.1)
    parser.add_argument("--dropout", type=float, default=0.1)
    parser.add_argument("--ema", type=float, default=0.99)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--precision", choices=["float32", "bfloat16"], default="bfloat16")
    parser.add_argument("--compile", action=argparse.BooleanOptionalAction, default=True)
    parser.add_argument("--evaluate-every", type=int, default=100)
    parser.add_argument("--out", type=Path, default=DATA / "tiny-gpt2")
    parser.add_argument("--checkpoint", type=Path, help="resume from this file when it exists, and keep it")
    return parser.parse_args()


def main() -> None:
    args = arguments()
    torch.manual_seed(args.seed)
    torch.set_num_threads(args.threads)
    tokenizer = Tokenizer.from_file(str(DATA / "tiny-gpt2" / "tokenizer.json"))
    assert tokenizer.token_to_id(END_OF_TEXT) == N_VOCAB - 1
    text = (DATA / "tinyshakespeare.txt").read_text(encoding="utf-8")
    train_ids, held_out_ids = (torch.tensor(tokenizer.encode(part).ids) for part in split_text(text))

    model = GPT2(args.dropout)
    average = GPT2(args.dropout)
    average.load_state_dict(model.state_dict())
    optimizers = make_optimizers(model, args)
    loss_of = torch.compile(model.loss) if args.compile else model.loss
    first = 0
    if args.checkpoint and args.checkpoint.exists():
        saved = torch.load(args.checkpoint)
        first = saved["step"]
        model.load_state_dict(saved["model"])
        average.load_state_dict(saved["average"])
        for optimizer, state in zip(optimizers, saved["optimizers"], strict=True):
            optimizer.load_state_dict(state)
    if args.minutes:
        args.steps = args.decay_from = 10**9

    begin = time.monotonic()
    recent: list[float] = []
    for step in range(first, 10**9):
        if step >= args.steps:
            break
        torch.manual_seed(args.seed * 1_000_003 + step)
        for optimizer in optimizers:
            for group in optimizer.param_groups:
                group["lr"] = group["peak_lr"] * learning_rate(step, args)
        inputs, targets = batch(train_ids, step, args)
        with torch.autocast("cpu", torch.bfloat16, enabled=args.precision == "bfloat16"):
            loss = loss_of(inputs, targets)
        loss.backward()
        for optimizer in optimizers:
            optimizer.step()
            optimizer.zero_grad(set_to_none=True)
        recent.append(loss.item())
        with torch.no_grad():
            weight = 1 - min(args.ema, (step + 1) / (step + 10))
            for p, q in zip(average.parameters(), model.parameters(), strict=True):
                p.lerp_(q, weight)

        done, minutes = step + 1, (time.monotonic() - begin) / 60
        if args.minutes and args.decay_from == 10**9 and minutes >= 0.55 * args.minutes:
            args.decay_from = done
            args.steps = done + int((done - first) * (args.minutes - minutes) / minutes)
            print(f"decay from step {args.decay_from} to {args.steps}", flush=True)
        if done % args.evaluate_every == 0 or done == args.steps:
            held_out = losses(average, held_out_ids, stride=N_CTX)
            record = {
                "steps": done,
                "decay_from": min(args.decay_from, done),
                "tokens": done * args.batch * N_CTX,
                "training_loss": round(float(np.mean(recent)), 4),
                "held_out_loss": round(held_out.mean().item(), 4),
                "held_out_by_position": {
                    f"{i}-{j - 1}": round(held_out[:, i:j].mean().item(), 3)
                    for i, j in ((0, 1), (1, 8), (8, 32), (32, 128), (128, 256), (256, 384), (384, 512))
                },
            }
            recent.clear()
            print(f"{minutes:.1f} minutes", json.dumps(record), flush=True)
            export(average, args.out, record)
            if args.checkpoint:
                state = {
                    "step": done,
                    "model": model.state_dict(),
                    "average": average.state_dict(),
                    "optimizers": [optimizer.state_dict() for optimizer in optimizers],
                }
                torch.save(state, args.checkpoint.with_suffix(".tmp"))
                args.checkpoint.with_suffix(".tmp").replace(args.checkpoint)


if __name__ == "__main__":
    main()
