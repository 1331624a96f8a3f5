"""Records test/fixtures/gguf/blocks.json: blocks of every type with random bytes, and what Python's `gguf` makes of them.

    pip install gguf numpy && python test/support/record-gguf-blocks.py > test/fixtures/gguf/blocks.json
"""

import base64
import json

import numpy as np
from gguf import GGML_QUANT_SIZES, GGMLQuantizationType, dequantize

TYPES = ["F32", "F16", "BF16", "Q8_0", "Q4_0", "Q4_1", "Q5_0", "Q5_1", "Q2_K", "Q3_K", "Q4_K", "Q5_K", "Q6_K"]
# Places of the halves in a block: scales and minima, which must be finite.
HALVES = {"Q8_0": [0], "Q4_0": [0], "Q4_1": [0, 2], "Q5_0": [0], "Q5_1": [0, 2], "Q2_K": [80, 82], "Q3_K": [108],
          "Q4_K": [0, 2], "Q5_K": [0, 2], "Q6_K": [208]}

rng = np.random.default_rng(7)
rows = []
for name in TYPES:
    kind = GGMLQuantizationType[name]
    block, size = GGML_QUANT_SIZES[kind]
    count = 4 if block > 32 else 16 if block == 32 else 64
    data = rng.integers(0, 256, (count, size), dtype=np.uint8)
    for i in range(count):
        if block == 1:
            value = np.float32(rng.standard_normal() * 10.0 ** rng.integers(-9, 4))
            width = {"F32": 4, "F16": 2, "BF16": 2}[name]
            bits = np.frombuffer(np.float16(value).tobytes() if name == "F16" else value.tobytes(), dtype=np.uint8)
            data[i] = bits[-width:]
        for at in HALVES.get(name, []):
            # Of all sizes: subnormal ones, ordinary ones, negative ones.
            data[i, at : at + 2] = np.frombuffer(
                np.float16(rng.standard_normal() * 10.0 ** rng.integers(-8, 3)).tobytes(), dtype=np.uint8
            )
    flat = data.reshape(1, -1)
    found = flat.view(np.float32) if name == "F32" else dequantize(flat.view(np.float16) if name == "F16" else flat, kind)
    rows.append({"type": name, "bytes": base64.b64encode(flat.tobytes()).decode(),
                 "values": base64.b64encode(np.ascontiguousarray(found, dtype=np.float32).tobytes()).decode()})
print("[" + ",\n".join(json.dumps(row) for row in rows) + "]")
