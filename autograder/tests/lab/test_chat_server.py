"""Stage 5's ranking failure in a chat model, by the course's own lookup, on a small random model."""

from autograder.bench.solved import solved
from autograder.lab import ranking_in_chat
from autograder.toolkit.chat import LlamaConfig, byte_tokenizer, random_llama
from autograder.toolkit.chat.tokenizer import ChatTokenizer

SHAPE = LlamaConfig(2, 4, 2, n_embd=16, n_inner=20, n_ctx=4096, n_vocab=259)
CHATML = (
    "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)


def test_the_wrong_lookup_computes_all_and_the_students_the_suffix():
    course, tokenizer = solved("failure-modes"), ChatTokenizer(byte_tokenizer()._inner, CHATML)
    *_, wrong, right = ranking_in_chat(random_llama(SHAPE, 1), tokenizer, course.lookup, course.explain_miss)
    assert (wrong["prompt"], wrong["reused"], wrong["computed"]) == (2432, 0, 2432)
    assert (right["prompt"], right["reused"], right["computed"]) == (2432, 2328, 104)
