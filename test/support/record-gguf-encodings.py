"""Records test/fixtures/gguf/encodings.jsonl: weights, and the bytes that Python's `gguf` makes of them in each type that is written.

    pip install gguf numpy && python test/support/record-gguf-encodings.py > test/fixtures/gguf/encodings.jsonl
"""

import base64
import json

import numpy as np
from gguf import GGMLQuantizationType, quantize

rng = np.random.default_rng(11)
blocks = []
# Sizes from those whose scale is a subnormal half up to large ones.
for power in range(-12, 5):
    blocks.append(rng.standard_normal(32) * 10.0**power)
blocks.append(np.zeros(32))
# A scale of one: codes in the middle between two, of both signs, and just beside it.
middle = np.arange(32) - 15.5
middle[0] = 127
blocks.append(middle)
blocks.append(np.nextafter(middle.astype(np.float32), np.float32(0)))
blocks.append(-middle)
blocks.append(np.where(np.arange(32) % 2 == 0, -0.0, 1e-3))
for _ in range(40):
    blocks.append(np.round(rng.standard_normal(32) * 40) / 2 * 2.0 ** rng.integers(-9, 3))
values = np.stack(blocks).astype(np.float32)
for name in ["F16", "BF16", "Q8_0"]:
    found = values.astype(np.float16) if name == "F16" else quantize(values, GGMLQuantizationType[name])
    print(json.dumps({"type": name, "values": base64.b64encode(values.tobytes()).decode(),
                      "bytes": base64.b64encode(np.ascontiguousarray(found).tobytes()).decode()}, separators=(",", ":")))
