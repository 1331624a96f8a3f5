/**
 * Torch baseline: the same model in PyTorch, eager, against which the tensor program is measured. A Python process
 * serves one measurement per line, so that both sides can be measured in turn.
 */
import { type ChildProcessWithoutNullStreams, execFileSync, spawn } from 'node:child_process';
import { existsSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';

const SOURCE = `
import sys, time, json, torch, torch.nn.functional as F
threads, L, D, H, FF, V, T = (int(a) for a in sys.argv[1:])
torch.set_num_threads(threads); torch.manual_seed(0)
dh = D // H
P = {}
def weight(name, *shape): P[name] = (torch.randn(*shape) * 0.05).requires_grad_()
def gain(name): P[name] = torch.ones(D, requires_grad=True)
weight('emb', V, D); weight('head', V, D); gain('norm')
for l in range(L):
    gain(f'n1{l}'); gain(f'n2{l}')
    for w in 'qkvo': weight(f'{w}{l}', D, D)
    weight(f'gate{l}', FF, D); weight(f'up{l}', FF, D); weight(f'down{l}', D, FF)
freq = 10000.0 ** (-torch.arange(0, dh // 2) / (dh // 2))
angle = torch.arange(0, 2 * T).float()[:, None] * freq
COS, SIN = angle.cos(), angle.sin()
def rms(x, g): return x * torch.rsqrt((x * x).mean(-1, keepdim=True) + 1e-6) * g
def rotate(x, at):
    a, b = x[..., :dh // 2], x[..., dh // 2:]
    c, s = COS[at:at + x.shape[2]], SIN[at:at + x.shape[2]]
    return torch.cat([a * c - b * s, a * s + b * c], -1)
sdpa = getattr(F, 'scaled_dot_product_attention', None)
MASK = torch.full((T, T), -1e9).triu(1)
def attend(q, k, v, causal):
    if sdpa: return sdpa(q, k, v, is_causal=causal)
    s = q @ k.transpose(-1, -2) * dh ** -0.5
    if causal: s = s + MASK[:q.shape[2], :q.shape[2]]
    return torch.softmax(s, -1) @ v
def block(x, l, B, t, at, past):
    h = rms(x, P[f'n1{l}'])
    q, k, v = (F.linear(h, P[w + str(l)]).view(B, t, H, dh).transpose(1, 2) for w in 'qkv')
    q, k = rotate(q, at), rotate(k, at)
    new = (k, v)
    if past: k, v = torch.cat([past[0], k], 2), torch.cat([past[1], v], 2)
    o = attend(q, k, v, past is None).transpose(1, 2).reshape(B, t, D)
    x = x + F.linear(o, P[f'o{l}'])
    h = rms(x, P[f'n2{l}'])
    return x + F.linear(F.silu(F.linear(h, P[f'gate{l}'])) * F.linear(h, P[f'up{l}']), P[f'down{l}']), new
def model(ids, at=0, past=None):
    B, t = ids.shape
    x = F.embedding(ids, P['emb'])
    rows = []
    for l in range(L):
        x, new = block(x, l, B, t, at, past[l] if past else None)
        rows.append(new)
    return F.linear(rms(x, P['norm']), P['head']), rows
params = list(P.values())
optimizer = torch.optim.AdamW(params, 1e-3, betas=(0.9, 0.98), weight_decay=0.01)
def train(B):
    ids, targets = torch.randint(0, V, (B, T)), torch.randint(0, V, (B, T))
    def step():
        optimizer.zero_grad()
        loss = F.cross_entropy(model(ids)[0].view(-1, V), targets.view(-1))
        loss.backward()
        torch.nn.utils.clip_grad_norm_(params, 1.0)
        optimizer.step()
    return step
def forward(B):
    ids = torch.randint(0, V, (B, T))
    def step():
        with torch.no_grad(): model(ids)
    return step
def decode(B):
    ids = torch.randint(0, V, (B, 1))
    past = [(torch.randn(B, H, 64, dh), torch.randn(B, H, 64, dh)) for _ in range(L)]
    def step():
        with torch.no_grad(): model(ids, 64, past)
    return step
def matmul(n):
    a, b = torch.randn(n, n), torch.randn(n, n)
    return lambda: a @ b
made = {}
print(json.dumps({'torch': torch.__version__}), flush=True)
for line in sys.stdin:
    what, B, seconds = line.split()
    if (what, B) not in made: made[what, B] = globals()[what](int(B)); made[what, B]()
    step, times, start = made[what, B], [], time.perf_counter()
    while time.perf_counter() - start < float(seconds) or len(times) < 3:
        c, t = time.process_time(), time.perf_counter(); step()
        times.append([(time.perf_counter() - t) * 1000, (time.process_time() - c) * 1000])
    print(json.dumps(times), flush=True)
`;

/** [wall, processor] milliseconds of each run. */
export type Times = (readonly [wall: number, cpu: number])[];

export interface TorchShape {
  readonly layers: number;
  readonly hiddenSize: number;
  readonly heads: number;
  readonly intermediateSize: number;
  readonly vocabSize: number;
  readonly tokens: number;
}

export class Torch {
  readonly version: string;
  readonly #child: ChildProcessWithoutNullStreams;
  readonly #lines: AsyncIterator<string>;

  private constructor(child: ChildProcessWithoutNullStreams, lines: AsyncIterator<string>, version: string) {
    this.#child = child;
    this.#lines = lines;
    this.version = version;
  }

  /** @returns undefined where none of the Pythons can import torch */
  static async start(pythons: readonly string[], threads: number, shape: TorchShape): Promise<Torch | undefined> {
    const python = pythons.find(hasTorch);
    if (python === undefined) return undefined;
    const { layers, hiddenSize, heads, intermediateSize, vocabSize, tokens } = shape;
    const sizes = [threads, layers, hiddenSize, heads, intermediateSize, vocabSize, tokens];
    const child = spawn(python, ['-c', SOURCE, ...sizes.map(String)], {
      env: {
        ...process.env,
        OMP_NUM_THREADS: String(threads),
        MKL_NUM_THREADS: String(threads),
        LD_LIBRARY_PATH: [openmpBlas(), process.env.LD_LIBRARY_PATH].filter((path) => path !== undefined).join(':'),
      },
    });
    child.stderr.pipe(process.stderr);
    const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
    const { value } = await lines.next();
    return new Torch(child, lines, (JSON.parse(value as string) as { torch: string }).torch);
  }

  /** Milliseconds of each run during `seconds`, by the clock and of the processors. */
  async measure(what: 'train' | 'forward' | 'decode' | 'matmul', batch: number, seconds: number): Promise<Times> {
    this.#child.stdin.write(`${what} ${batch} ${seconds}\n`);
    const { value, done } = await this.#lines.next();
    if (done) throw new Error('the PyTorch process ended');
    return JSON.parse(value) as Times;
  }

  stop(): void {
    this.#child.stdin.end();
  }
}

/**
 * Folder of Debian's OpenBLAS that shares PyTorch's OpenMP threads. With the reference BLAS Debian's PyTorch is ten
 * times as slow, with the OpenBLAS that has threads of its own up to three times: two pools then fight for the cores.
 * A PyTorch that brings its own BLAS is not touched by it.
 */
export function openmpBlas(): string | undefined {
  const root = '/usr/lib';
  const folders = existsSync(root) ? readdirSync(root).map((name) => join(root, name, 'openblas-openmp')) : [];
  return folders.find((folder) => existsSync(join(folder, 'libblas.so.3')));
}

function hasTorch(python: string): boolean {
  try {
    execFileSync(python, ['-c', 'import torch'], { stdio: 'ignore' });
    return true;
  } catch {
    return false;
  }
}
