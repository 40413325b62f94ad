"""Readers of safetensors, Hugging Face folders and GGUF in plain Python, for what `minillm export` writes."""
import json
import struct

from plain_llama import HALVES, NEIGHBOURS, rows_of


def shaped(values, shape):
    return rows_of(values, *shape) if len(shape) == 2 else list(values)


def read_safetensors(content):
    """(name -> rows or values, header) of a file that holds F32 alone."""
    size = struct.unpack("<Q", content[:8])[0]
    header = json.loads(content[8:8 + size])
    tensors = {}
    for name, entry in header.items():
        if name == "__metadata__":
            continue
        if entry["dtype"] != "F32":
            raise ValueError(entry["dtype"])
        begin, end = entry["data_offsets"]
        values = struct.unpack(f"<{(end - begin) // 4}f", content[8 + size + begin:8 + size + end])
        tensors[name] = shaped(values, entry["shape"])
    return tensors, header


HUGGINGFACE = {"wq": "self_attn.q_proj", "wk": "self_attn.k_proj", "wv": "self_attn.v_proj", "wo": "self_attn.o_proj",
               "q_norm": "self_attn.q_norm", "k_norm": "self_attn.k_norm",
               "w1": "mlp.gate_proj", "w2": "mlp.down_proj", "w3": "mlp.up_proj"}


def read_decoder(config, tensors):
    """A model of plain_llama.py from a config.json and the tensors of Llama, Qwen3 or Olmo2."""
    norms = {"attn_norm": "input_layernorm", "ffn_norm": "post_attention_layernorm"}
    if config["model_type"] == "olmo2":
        norms = {"attn_out_norm": "post_attention_layernorm", "ffn_out_norm": "post_feedforward_layernorm"}
    layers = []
    for layer in range(config["num_hidden_layers"]):
        names = {ours: f"model.layers.{layer}.{theirs}.weight" for ours, theirs in {**HUGGINGFACE, **norms}.items()}
        layers.append({ours: tensors[theirs] for ours, theirs in names.items() if theirs in tensors})
    embed = tensors["model.embed_tokens.weight"]
    return {"config": {"dim": config["hidden_size"], "heads": config["num_attention_heads"],
                       "kv_heads": config["num_key_value_heads"], "head_dim": config["head_dim"],
                       "eps": config["rms_norm_eps"], "theta": config["rope_theta"], "pairs": HALVES},
            "embed": embed, "head": embed if config["tie_word_embeddings"] else tensors["lm_head.weight"],
            "norm": tensors["model.norm.weight"], "layers": layers}


def read_huggingface(folder):
    config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    tensors, _ = read_safetensors((folder / "model.safetensors").read_bytes())
    return config, tensors


# GGUF's types of metadata, in the order of their numbers; 8 is a text, 9 a list.
PLAIN = ("B", "b", "H", "h", "I", "i", "f", "?", None, None, "Q", "q", "d")


class Gguf:
    """A file's metadata, and its tensors as (extents, type, rows or values)."""

    def __init__(self, content):
        self.content, self.at = content, 0
        magic, self.version, tensors, entries = self.take("<4sIQQ")
        if magic != b"GGUF":
            raise ValueError(magic)
        self.metadata = {}
        for _ in range(entries):
            key = self.text()
            self.metadata[key] = self.value(self.take("<I")[0])
        infos = [self.info() for _ in range(tensors)]
        alignment = self.metadata.get("general.alignment", 32)
        self.start = -(-self.at // alignment) * alignment
        self.tensors = {name: self.tensor(*rest) for name, *rest in infos}

    def take(self, pattern):
        found = struct.unpack_from(pattern, self.content, self.at)
        self.at += struct.calcsize(pattern)
        return found

    def text(self):
        size = self.take("<Q")[0]
        self.at += size
        return self.content[self.at - size:self.at].decode()

    def value(self, kind):
        if kind == 8:
            return self.text()
        if kind == 9:
            inner, count = self.take("<IQ")
            return [self.value(inner) for _ in range(count)]
        return self.take("<" + PLAIN[kind])[0]

    def info(self):
        name = self.text()
        extents = self.take(f"<{self.take('<I')[0]}Q")
        return name, extents, *self.take("<IQ")

    def tensor(self, extents, kind, offset):
        if kind != 0 or offset % 32 != 0:
            raise ValueError((kind, offset))
        count = extents[0] * (extents[1] if len(extents) > 1 else 1)
        values = struct.unpack_from(f"<{count}f", self.content, self.start + offset)
        return shaped(values, tuple(reversed(extents)))


GGUF_NAMES = {"attn_norm": "attn_norm", "ffn_norm": "ffn_norm", "wq": "attn_q", "wk": "attn_k", "wv": "attn_v",
              "wo": "attn_output", "w1": "ffn_gate", "w2": "ffn_down", "w3": "ffn_up"}


def read_gguf(content):
    """(model of plain_llama.py, Gguf)"""
    file = Gguf(content)
    data, tensors = file.metadata, file.tensors
    embed = tensors["token_embd.weight"]
    layers = [{ours: tensors[f"blk.{layer}.{theirs}.weight"] for ours, theirs in GGUF_NAMES.items()}
              for layer in range(data["llama.block_count"])]
    model = {"config": {"dim": data["llama.embedding_length"], "heads": data["llama.attention.head_count"],
                        "kv_heads": data["llama.attention.head_count_kv"],
                        "head_dim": data["llama.rope.dimension_count"],
                        "eps": data["llama.attention.layer_norm_rms_epsilon"],
                        "theta": data["llama.rope.freq_base"], "pairs": NEIGHBOURS},
             "embed": embed, "head": tensors.get("output.weight", embed), "norm": tensors["output_norm.weight"],
             "layers": layers}
    return model, file
