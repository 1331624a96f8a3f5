/**
 * Qwen2 and its LoRA step in Python: language models are measured against it. In plain PyTorch, eager; and in transformers
 * and peft where that Python has them. One process per measurement, as on our side.
 */
import { execFileSync, spawnSync } from 'node:child_process';
import { openmpBlas } from './tensor-torch.ts';

/** Lines that time `step` and take the peak of memory. */
const TIMED = `step(); times = []; start = time.perf_counter()
while time.perf_counter() - start < seconds or len(times) < 2:
    c, t = time.process_time(), time.perf_counter(); step()
    times.append([(time.perf_counter() - t) * 1000, (time.process_time() - c) * 1000])
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
`;

const SOURCE = `
import sys, time, json, resource, torch, torch.nn.functional as F
what, seconds = sys.argv[1], float(sys.argv[2])
torch.set_num_threads(1); torch.manual_seed(0)
V, D, L, H, KV, FF = 151936, 896, 24, 14, 2, 4864
dh = D // H
def w(*s): return torch.randn(*s) * 0.03
P = {'emb': w(V, D), 'norm': torch.ones(D)}
SIZES = {'q': (H * dh, D), 'k': (KV * dh, D), 'v': (KV * dh, D), 'o': (D, H * dh), 'gate': (FF, D), 'up': (FF, D), 'down': (D, FF)}
for l in range(L):
    P[f'n1{l}'] = torch.ones(D); P[f'n2{l}'] = torch.ones(D)
    for n, s in SIZES.items(): P[f'{n}{l}'] = w(*s)
    for n in 'qkv': P[f'{n}b{l}'] = torch.zeros(SIZES[n][0])
A = {}
def project(n, l, x):
    y = F.linear(x, P[f'{n}{l}'], P.get(f'{n}b{l}'))
    if A: y = y + F.linear(F.linear(x, A[f'{n}{l}a']), A[f'{n}{l}b']) * 2.0
    return y
freq = 1e6 ** (-torch.arange(0, dh // 2) / (dh // 2))
angle = torch.arange(0, 4096).float()[:, None] * freq
COS, SIN = angle.cos(), angle.sin()
def rms(x, g): return x * torch.rsqrt((x * x).mean(-1, keepdim=True) + 1e-6) * g
def rotate(x, at):
    a, b = x[..., :dh // 2], x[..., dh // 2:]
    c, s = COS[at:at + x.shape[2]], SIN[at:at + x.shape[2]]
    return torch.cat([a * c - b * s, a * s + b * c], -1)
def attend(q, k, v, causal):
    k, v = k.repeat_interleave(H // KV, 1), v.repeat_interleave(H // KV, 1)
    if hasattr(F, 'scaled_dot_product_attention'): return F.scaled_dot_product_attention(q, k, v, is_causal=causal)
    s = q @ k.transpose(-1, -2) * dh ** -0.5
    if causal: s = s + torch.full((s.shape[-2], s.shape[-1]), -1e9).triu(1)
    return torch.softmax(s, -1) @ v
def model(ids, at=0, past=None, last=False):
    B, t = ids.shape
    x = F.embedding(ids, P['emb'])
    for l in range(L):
        h = rms(x, P[f'n1{l}'])
        q = rotate(project('q', l, h).view(B, t, H, dh).transpose(1, 2), at)
        k = rotate(project('k', l, h).view(B, t, KV, dh).transpose(1, 2), at)
        v = project('v', l, h).view(B, t, KV, dh).transpose(1, 2)
        if past: k, v = torch.cat([past[l][0], k], 2), torch.cat([past[l][1], v], 2)
        x = x + project('o', l, attend(q, k, v, past is None).transpose(1, 2).reshape(B, t, H * dh))
        h = rms(x, P[f'n2{l}'])
        x = x + project('down', l, F.silu(project('gate', l, h)) * project('up', l, h))
    return F.linear(rms(x[:, -1:] if last else x, P['norm']), P['emb'])
kind, size = what.split(':')[:2]
if kind == 'prefill':
    tokens = int(size); ids = torch.randint(0, V, (1, tokens))
    def step():
        with torch.no_grad(): model(ids, last=True)
elif kind == 'decode':
    tokens = int(size); ids = torch.randint(0, V, (tokens, 1))
    past = [(torch.randn(tokens, KV, 128, dh), torch.randn(tokens, KV, 128, dh)) for _ in range(L)]
    def step():
        with torch.no_grad(): model(ids, 128, past)
else:
    B, T = (int(a) for a in size.split('x')); tokens = B * T
    for l in range(L):
        for n, (o, i) in SIZES.items():
            A[f'{n}{l}a'] = (torch.randn(16, i) * 0.01).requires_grad_(); A[f'{n}{l}b'] = torch.zeros(o, 16).requires_grad_()
    optimizer = torch.optim.AdamW(list(A.values()), 1e-4, betas=(0.9, 0.98))
    ids, targets = torch.randint(0, V, (B, T)), torch.randint(0, V, (B * T,))
    def step():
        optimizer.zero_grad()
        F.cross_entropy(model(ids).view(-1, V), targets).backward()
        torch.nn.utils.clip_grad_norm_(list(A.values()), 1.0)
        optimizer.step()
${TIMED}print(json.dumps({'tokens': tokens, 'times': times, 'peak': peak, 'used': {'torch': torch.__version__}}))
`;

const TRANSFORMERS = `
import sys, time, json, resource, torch, transformers
from transformers import Qwen2Config, Qwen2ForCausalLM
what, seconds = sys.argv[1], float(sys.argv[2])
torch.set_num_threads(1); torch.manual_seed(0)
config = Qwen2Config(vocab_size=151936, hidden_size=896, num_hidden_layers=24, num_attention_heads=14, num_key_value_heads=2, intermediate_size=4864, max_position_embeddings=32768, tie_word_embeddings=True)
model = Qwen2ForCausalLM(config).eval()
used = {'transformers': transformers.__version__}
kind, size = what.split(':')[:2]
if kind == 'prefill':
    tokens = int(size); ids = torch.randint(0, 151936, (1, tokens))
    def step():
        with torch.no_grad(): model(ids, logits_to_keep=1)
elif kind == 'decode':
    tokens = int(size)
    with torch.no_grad(): past = model(torch.randint(0, 151936, (tokens, 128)), logits_to_keep=1).past_key_values
    ids = torch.randint(0, 151936, (tokens, 1))
    def step():
        with torch.no_grad(): model(ids, past_key_values=past)
        past.crop(128)
else:
    import peft
    used['peft'] = peft.__version__
    B, T = (int(a) for a in size.split('x')); tokens = B * T
    names = ['q_proj', 'k_proj', 'v_proj', 'o_proj', 'gate_proj', 'up_proj', 'down_proj']
    model = peft.get_peft_model(model, peft.LoraConfig(r=16, lora_alpha=32, target_modules=names, lora_dropout=0.0)).train()
    trained = [p for p in model.parameters() if p.requires_grad]
    optimizer = torch.optim.AdamW(trained, 1e-4, betas=(0.9, 0.98))
    ids = torch.randint(0, 151936, (B, T))
    def step():
        optimizer.zero_grad()
        model(input_ids=ids, labels=ids).loss.backward()
        torch.nn.utils.clip_grad_norm_(trained, 1.0)
        optimizer.step()
${TIMED}print(json.dumps({'tokens': tokens, 'times': times, 'peak': peak, 'used': used}))
`;

/** Programs that Python is measured by. */
const PROGRAMS = { torch: SOURCE, transformers: TRANSFORMERS };

/** Measurement of a Python, with its packages' versions. */
export interface PythonMeasurement {
  readonly tokens: number;
  readonly times: readonly (readonly [wall: number, cpu: number])[];
  /** 10^9 bytes resident at the most. */
  readonly peak: number;
  readonly used: Readonly<Record<string, string>>;
}

/** Programs that a Python can run: plain PyTorch, and transformers where it can be imported with peft. */
export function pythonWays(python: string): (keyof typeof PROGRAMS)[] {
  const { status } = spawnSync(python, ['-c', 'import transformers, peft'], { stdio: 'ignore' });
  return status === 0 ? ['torch', 'transformers'] : ['torch'];
}

/** Measures Python. @param what as in llm-worker.ts, but `load` and `threads` */
export function measurePython(
  python: string,
  way: keyof typeof PROGRAMS,
  what: string,
  seconds: number,
): PythonMeasurement {
  const blas = openmpBlas();
  const env = {
    ...process.env,
    OMP_NUM_THREADS: '1',
    LD_LIBRARY_PATH: [blas, process.env.LD_LIBRARY_PATH].filter((path) => path !== undefined).join(':'),
  };
  const args = ['-c', PROGRAMS[way], what, String(seconds)];
  const out = execFileSync(python, args, { env, encoding: 'utf8', stdio: ['ignore', 'pipe', 'pipe'] });
  return JSON.parse(out) as PythonMeasurement;
}
