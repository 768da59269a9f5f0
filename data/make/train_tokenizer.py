"""Train the byte-level BPE tokenizer of data/tiny-gpt2 and write its tokenizer.json.

    python data/make/train_tokenizer.py

GPT-2's recipe at a small size: the same pre-tokenization, every byte a token of its own (so that any
text can be encoded), `<|endoftext|>`, and as many merges as make 1,024 ids in all. Only the training
part of the text is seen, never the held-out last tenth. The same text gives the same file.
"""

from __future__ import annotations

import json
from pathlib import Path

from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors, trainers

DATA = Path(__file__).resolve().parent.parent
N_VOCAB = 1024
N_CTX = 512
END_OF_TEXT = "<|endoftext|>"


def split_text(text: str) -> tuple[str, str]:
    """The text as (training part, held-out part): the last tenth of the characters is held out."""
    cut = len(text) * 9 // 10
    return text[:cut], text[cut:]


def train_tokenizer(text: str) -> Tokenizer:
    """A byte-level BPE of exactly N_VOCAB ids, `<|endoftext|>` the last of them, as in GPT-2."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.post_processor = processors.ByteLevel(trim_offsets=False)
    trainer = trainers.BpeTrainer(
        vocab_size=N_VOCAB - 1,
        initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()),
        show_progress=False,
    )
    tokenizer.train_from_iterator([text], trainer)
    tokenizer.add_special_tokens([END_OF_TEXT])
    assert tokenizer.get_vocab_size() == N_VOCAB
    assert tokenizer.token_to_id(END_OF_TEXT) == N_VOCAB - 1
    return tokenizer


def main() -> None:
    train, held_out = split_text((DATA / "tinyshakespeare.txt").read_text(encoding="utf-8"))
    tokenizer = train_tokenizer(train)
    folder = DATA / "tiny-gpt2"
    folder.mkdir(exist_ok=True)
    content = json.loads(tokenizer.to_str())
    # Merges as "a b", the form that every release of the tokenizers library reads; newer ones write pairs.
    content["model"]["merges"] = [" ".join(pair) for pair in content["model"]["merges"]]
    (folder / "tokenizer.json").write_text(json.dumps(content, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")
    settings = {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "bos_token": END_OF_TEXT,
        "eos_token": END_OF_TEXT,
        "unk_token": END_OF_TEXT,
        "model_max_length": N_CTX,
        "clean_up_tokenization_spaces": False,
    }
    (folder / "tokenizer_config.json").write_text(json.dumps(settings, indent=2) + "\n")
    for name, part in (("training", train), ("held-out", held_out)):
        n_token = len(tokenizer.encode(part).ids)
        print(f"{name}: {len(part):,} characters, {n_token:,} tokens, {len(part) / n_token:.3f} characters a token")


if __name__ == "__main__":
    main()
