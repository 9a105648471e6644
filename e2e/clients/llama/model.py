"""Writes a model of random weights: two layers, a vocabulary of bytes and a few words."""
import sys

import gguf
import numpy as np

WIDTH, HEADS, LAYERS, INNER = 64, 4, 2, 128
WORDS = "the a of to and said was little one day with in it that she he they friends book best Suddenly But couldn't blue Aside".split()

tokens = ["<unk>", "<s>", "</s>"] + [f"<0x{b:02X}>" for b in range(256)] + ["▁"] + [c for c in map(chr, range(33, 127))] + ["▁" + w for w in WORDS]
T = gguf.TokenType
types = [T.UNKNOWN, T.CONTROL, T.CONTROL] + [T.BYTE] * 256 + [T.NORMAL] * (len(tokens) - 259)

w = gguf.GGUFWriter(sys.argv[1], "llama")
w.add_name("random")
w.add_context_length(2048)
w.add_embedding_length(WIDTH)
w.add_block_count(LAYERS)
w.add_feed_forward_length(INNER)
w.add_head_count(HEADS)
w.add_head_count_kv(HEADS)
w.add_rope_dimension_count(WIDTH // HEADS)
w.add_layer_norm_rms_eps(1e-5)
w.add_vocab_size(len(tokens))
w.add_tokenizer_model("llama")
w.add_token_list(tokens)
w.add_token_scores([-float(i) for i in range(len(tokens))])
w.add_token_types(types)
w.add_bos_token_id(1)
w.add_eos_token_id(2)
w.add_unk_token_id(0)

random = np.random.default_rng(42)


def tensor(name, *shape, scale=0.3):
    w.add_tensor(name, (random.standard_normal(shape) * scale).astype(np.float32))


tensor("token_embd.weight", len(tokens), WIDTH)
for i in range(LAYERS):
    for name in "attn_norm", "ffn_norm":
        w.add_tensor(f"blk.{i}.{name}.weight", np.ones(WIDTH, np.float32))
    for name in "attn_q", "attn_k", "attn_v", "attn_output":
        tensor(f"blk.{i}.{name}.weight", WIDTH, WIDTH)
    tensor(f"blk.{i}.ffn_gate.weight", INNER, WIDTH)
    tensor(f"blk.{i}.ffn_up.weight", INNER, WIDTH)
    tensor(f"blk.{i}.ffn_down.weight", WIDTH, INNER)
w.add_tensor("output_norm.weight", np.ones(WIDTH, np.float32))
# Words are likely, one that the tests wait for most of all; letters, bytes and the end
# are not: an answer is text of its full length.
output = (random.standard_normal((len(tokens), WIDTH)) * 0.5).astype(np.float32)
output[: len(tokens) - len(WORDS)] = 0
output[tokens.index("▁Suddenly")] *= 4
w.add_tensor("output.weight", output)

w.write_header_to_file()
w.write_kv_data_to_file()
w.write_tensors_to_file()
w.close()
