"""Records test/fixtures/gguf/smollm2-135m.json: what transformers computes from the folder that a GGUF file was converted into.

    pip install torch transformers && python test/support/record-gguf-greedy.py <folder> > test/fixtures/gguf/smollm2-135m.json
"""

import json
import sys

import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

QUESTIONS = ["What is a tree?", "Count from 1 to 20.", "Write a line about the sea, with ½ and ٣."]

torch.set_num_threads(1)
tokenizer = AutoTokenizer.from_pretrained(sys.argv[1])
model = AutoModelForCausalLM.from_pretrained(sys.argv[1], dtype=torch.float32).eval()
rows = []
for question in QUESTIONS:
    messages = [{"role": "user", "content": question}]
    text = tokenizer.apply_chat_template(messages, tokenize=False, add_generation_prompt=True)
    ids = tokenizer(text, add_special_tokens=False)["input_ids"]
    with torch.no_grad():
        whole = list(ids)
        out = model(torch.tensor([whole]), use_cache=True)
        for _ in range(64):  # not `generate`, which ends at an end token
            whole.append(int(out.logits[0, -1].argmax()))
            out = model(torch.tensor([whole[-1:]]), past_key_values=out.past_key_values, use_cache=True)
        best = model(torch.tensor([whole])).logits[0, -1].topk(8)
    rows.append({"prompt": question, "text": text, "ids": ids, "greedy": whole[len(ids):],
                 "logits": [[int(i), float(v)] for i, v in zip(best.indices, best.values)]})
print(json.dumps(rows, ensure_ascii=False, indent=0))
