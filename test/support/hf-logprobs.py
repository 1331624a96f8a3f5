"""Next-token log-probabilities by transformers, and by peft where an adapter is given:

    hf-logprobs.py '[ids]' <model folder> [adapter folder]
"""
import json
import sys

import torch
from transformers import AutoModelForCausalLM

ids, folder, *adapter = json.loads(sys.argv[1]), *sys.argv[2:]
model = AutoModelForCausalLM.from_pretrained(folder, torch_dtype=torch.float32)
if adapter:
    from peft import PeftModel

    model = PeftModel.from_pretrained(model, adapter[0])
with torch.no_grad():
    logprobs = torch.log_softmax(model(torch.tensor([ids])).logits[0], dim=-1)
print(json.dumps([logprobs[t, ids[t + 1]].item() for t in range(len(ids) - 1)]))
