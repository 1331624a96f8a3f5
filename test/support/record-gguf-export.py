"""Records test/fixtures/gguf/exported.jsonl: what Python's `gguf` reads of files that were written here.

    npm run build && node dist/test/support/varied-model.js /tmp/exported
    pip install gguf numpy && python test/support/record-gguf-export.py /tmp/exported > test/fixtures/gguf/exported.jsonl
"""

import hashlib
import json
import os
import sys

import numpy as np
from gguf import GGUFReader, dequantize


def digest(data):
    return hashlib.sha256(data).hexdigest()


for name in ["f32", "f16", "bf16", "q8_0"]:
    path = os.path.join(sys.argv[1], name + ".gguf")
    reader = GGUFReader(path)
    fields = {key: field.contents() for key, field in reader.fields.items() if not key.startswith("GGUF.")}
    tensors = []
    for tensor in reader.tensors:
        shape = [int(size) for size in reversed(tensor.shape)]
        values = dequantize(tensor.data, tensor.tensor_type).astype(np.float32)
        tensors.append([tensor.name, tensor.tensor_type.name, shape, digest(np.ascontiguousarray(values).tobytes())])
    row = {"type": name, "file": digest(open(path, "rb").read()), "fields": fields, "tensors": tensors}
    print(json.dumps(row, separators=(",", ":")))
