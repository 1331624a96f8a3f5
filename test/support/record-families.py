"""Records test/fixtures/families: tiny models of each family with random weights, and what transformers computes of them.

    pip install torch transformers && python test/support/record-families.py test/fixtures/families

Weights are bfloat16 in the file; numbers are computed in float32.
"""

import json
import os
import sys

import torch
from transformers import AutoConfig, AutoModelForCausalLM

SIZES = {"hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 2, "num_attention_heads": 4,
         "num_key_value_heads": 2, "vocab_size": 96, "max_position_embeddings": 256, "initializer_range": 0.25,
         "bos_token_id": None, "eos_token_id": None, "pad_token_id": None}
LLAMA3 = {"rope_type": "llama3", "rope_theta": 500.0, "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
          "original_max_position_embeddings": 32}
FAMILIES = {
    "llama3": {"model_type": "llama", "rope_parameters": LLAMA3, "tie_word_embeddings": True},
    "qwen3": {"model_type": "qwen3", "head_dim": 16, "tie_word_embeddings": True},
    "smollm3": {"model_type": "smollm3", "num_hidden_layers": 4, "tie_word_embeddings": True},
    "mistral": {"model_type": "mistral", "sliding_window": 96, "head_dim": 8, "tie_word_embeddings": False},
    "phi3": {"model_type": "phi3", "sliding_window": 24, "tie_word_embeddings": False},
    "phi4-mini": {"model_type": "phi3", "sliding_window": 256, "hidden_size": 64, "tie_word_embeddings": True,
                  "max_position_embeddings": 1024, "original_max_position_embeddings": 128, "rope_parameters": {
                      "rope_type": "longrope", "rope_theta": 500.0, "partial_rotary_factor": 0.75,
                      "original_max_position_embeddings": 128, "short_factor": [1.0, 1.1, 1.3, 1.7, 2.0, 3.0],
                      "long_factor": [1.0, 2.0, 4.0, 8.0, 16.0, 32.0]}},
    "gemma3": {"model_type": "gemma3_text", "num_hidden_layers": 4, "head_dim": 16, "sliding_window": 24,
               "query_pre_attn_scalar": 12, "layer_types": ["sliding_attention", "sliding_attention",
               "full_attention", "sliding_attention"], "tie_word_embeddings": True, "rope_parameters": {
                   "full_attention": {"rope_type": "linear", "factor": 8.0, "rope_theta": 1000000.0},
                   "sliding_attention": {"rope_type": "default", "rope_theta": 10000.0}}},
    "gemma2": {"model_type": "gemma2", "num_hidden_layers": 4, "head_dim": 16, "sliding_window": 24,
               "query_pre_attn_scalar": 12, "attn_logit_softcapping": 5.0, "final_logit_softcapping": 3.0,
               "tie_word_embeddings": True},
}

torch.set_num_threads(1)
for number, (name, fields) in enumerate(FAMILIES.items()):
    torch.manual_seed(number)
    fields = {**SIZES, **fields}
    config = AutoConfig.for_model(fields.pop("model_type"), **fields)
    model = AutoModelForCausalLM.from_config(config, dtype=torch.float32).eval()
    with torch.no_grad():
        for weight in model.parameters():
            if weight.dim() == 1:
                centre = 0 if name.startswith("gemma") else 1
                weight.copy_(centre + 0.3 * torch.randn_like(weight))
            weight.copy_(weight.bfloat16().float())
    chance = torch.Generator().manual_seed(number)
    prompt = torch.randint(0, 96, (20,), generator=chance).tolist()
    with torch.no_grad():
        whole = list(prompt)
        margin = 1e9
        for _ in range(64):
            best = model(torch.tensor([whole])).logits[0, -1].topk(2)
            margin = min(margin, float(best.values[0] - best.values[1]))
            whole.append(int(best.indices[0]))
        logits = model(torch.tensor([whole])).logits[0]
    print(name, "smallest margin", margin, "largest logit", float(logits.abs().max()))
    folder = os.path.join(sys.argv[1], name)
    # Last: the buffers of the rotary angles are rounded too.
    model.bfloat16().save_pretrained(folder)
    os.chmod(os.path.join(folder, "model.safetensors"), 0o644)
    with open(os.path.join(folder, "expected.jsonl"), "w") as file:
        row = {"prompt": prompt, "greedy": whole[20:], "logits": [logits[t].tolist() for t in (0, 19, 50, 83)]}
        file.write(json.dumps(row, separators=(",", ":")) + "\n")
