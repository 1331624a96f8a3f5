/**
 * A stand-in for vLLM and SGLang, for tests: real HTTP in both dialects over our own programs, so that the
 * log-probabilities it reports are true, with the faults that servers have. It keeps which adapter really answered.
 */
import { createServer, type IncomingMessage, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { Engine } from '../../src/compute/engine/engine.ts';
import { openEngine } from '../../src/compute/engine/open.ts';
import type { LoraConfig, ModelConfig } from '../../src/compute/model/config.ts';
import { parameterSpecs } from '../../src/compute/model/parameters.ts';
import { CachedPolicy } from '../../src/policy/cached-policy.ts';
import { readAdapter } from '../../src/policy/pretrained/adapter.ts';
import { freeze } from '../../src/policy/pretrained/base.ts';
import { openModel } from '../../src/policy/pretrained/folder.ts';
import { type ChatCodecSpec, openChatCodec } from '../../src/text/reading/chat-codec.ts';

/** Faults to come; each counts down. */
export interface Faults {
  /** Loads that answer 500 and load nothing. */
  failLoads: number;
  /** Loads that load, and answer too late; that load, and answer 500. */
  lateLoads: number;
  halfLoads: number;
  /** Adapters that are dropped silently when they are next requested, as a server does that has no room. */
  evictions: number;
  /** Generations that are broken off, that answer 500, or that claim to be of another model. */
  aborts: number;
  errors: number;
  impostors: number;
}

/** A generation as it really was. */
export interface TrueAnswer {
  /** Undefined: the base alone. */
  readonly adapter: string | undefined;
  readonly tokens: readonly number[];
  readonly logprobs: readonly number[];
}

type Body = Readonly<Record<string, unknown>>;

interface Reply {
  readonly status: number;
  readonly body: unknown;
}

/** Tokens sampled, or the fault that came instead. */
type Sampled =
  | { readonly reply: Reply }
  | { readonly reply?: never; readonly tokens: number[]; readonly logprobs: number[]; readonly finish: string };

export class FakeGenerationServer {
  readonly faults: Faults = {
    failLoads: 0,
    lateLoads: 0,
    halfLoads: 0,
    evictions: 0,
    aborts: 0,
    errors: 0,
    impostors: 0,
  };
  /** True for a server that does not see the adapters' folder. */
  blind = false;
  readonly answers: TrueAnswer[] = [];
  /** Every name ever loaded, and those that are loaded now. */
  readonly everLoaded: string[] = [];
  readonly loaded = new Map<string, string>();
  /** Bias of every log-probability: a server that reports those before its temperature, or of another model. */
  bias = 0;
  /** Milliseconds that a late load takes to answer. */
  lateMs = 300;
  readonly #api: 'vllm' | 'sglang';
  readonly #engine: Engine;
  readonly #policy: CachedPolicy;
  readonly #config: ModelConfig & { readonly adapter: LoraConfig };
  #server: Server | undefined;
  #port = 0;
  #busy: Promise<unknown> = Promise.resolve();
  #episode = 0;

  private constructor(
    api: 'vllm' | 'sglang',
    engine: Engine,
    policy: CachedPolicy,
    config: ModelConfig & { readonly adapter: LoraConfig },
  ) {
    this.#api = api;
    this.#engine = engine;
    this.#policy = policy;
    this.#config = config;
  }

  /** @param adapter shape that the adapters will have */
  static async start(api: 'vllm' | 'sglang', chat: ChatCodecSpec, adapter: LoraConfig): Promise<FakeGenerationServer> {
    const engine = await openEngine({ name: 'onnxruntime-node', threads: 1 });
    const config = { ...freeze(openModel(chat.folder)), adapter };
    const options = { config, codec: openChatCodec(chat), decoder: 'tokens', masked: false, maxTokens: 256 } as const;
    const policy = await CachedPolicy.create(
      engine,
      { ...options, maxBatch: 4, cacheOnUpdate: 'keep' },
      nothing(config),
    );
    const server = new FakeGenerationServer(api, engine, policy, config);
    await server.listen();
    return server;
  }

  get url(): string {
    return `http://127.0.0.1:${this.#port}`;
  }

  async listen(): Promise<void> {
    this.#server = createServer(async (request, response) => {
      const { status, body } = await this.#answer(request).catch((thrown: Error) => ({
        status: 500,
        body: { error: thrown.message },
      }));
      response.writeHead(status, { 'content-type': 'application/json' });
      response.end(typeof body === 'string' ? body : JSON.stringify(body));
    });
    await new Promise<void>((resolve) => this.#server!.listen(this.#port, '127.0.0.1', resolve));
    this.#port = (this.#server!.address() as AddressInfo).port;
  }

  /** Dies, forgetting its adapters; `listen` starts it again on the same port. */
  async kill(): Promise<void> {
    this.loaded.clear();
    this.#server!.closeAllConnections();
    await new Promise((resolve) => this.#server!.close(resolve));
  }

  async stop(): Promise<void> {
    await this.kill();
    await this.#busy.catch(() => {});
    await this.#policy.dispose();
    await this.#engine.dispose();
  }

  async #answer(request: IncomingMessage): Promise<Reply> {
    const body = JSON.parse(await textOf(request)) as Body;
    const path = request.url ?? '';
    const vllm = this.#api === 'vllm';
    if (path === (vllm ? '/v1/load_lora_adapter' : '/load_lora_adapter'))
      return this.#load(String(body.lora_name), String(body.lora_path));
    if (path === (vllm ? '/v1/unload_lora_adapter' : '/unload_lora_adapter'))
      return this.#unload(String(body.lora_name));
    if (vllm && path === '/v1/completions') return this.#complete(body);
    if (!vllm && path === '/generate') return this.#generate(body);
    return { status: 404, body: { detail: 'Not Found' } };
  }

  async #load(name: string, path: string) {
    const answer = (status: number, message: string) =>
      this.#api === 'vllm'
        ? { status, body: status === 200 ? message : { error: { message, type: 'x', param: null, code: status } } }
        : {
            status: status === 200 ? 200 : 400,
            body: { success: status === 200, error_message: status === 200 ? null : message },
          };
    if (this.faults.failLoads > 0) {
      this.faults.failLoads--;
      return answer(500, 'out of luck');
    }
    if (this.loaded.has(name)) return answer(400, `The lora adapter '${name}' has already been loaded.`);
    try {
      if (this.blind) throw new Error(`No adapter found for ${path}`);
      readAdapter(path, this.#config);
    } catch (thrown) {
      return answer(404, (thrown as Error).message);
    }
    this.loaded.set(name, path);
    this.everLoaded.push(name);
    if (this.faults.lateLoads > 0) {
      this.faults.lateLoads--;
      await new Promise((resolve) => setTimeout(resolve, this.lateMs));
    }
    if (this.faults.halfLoads > 0) {
      this.faults.halfLoads--;
      return answer(500, 'out of luck, and loaded all the same');
    }
    return answer(200, `Success: LoRA adapter '${name}' added successfully.`);
  }

  #unload(name: string) {
    const known = this.loaded.delete(name);
    if (this.#api === 'sglang')
      return { status: known ? 200 : 400, body: { success: known, error_message: known ? null : 'unknown' } };
    return known
      ? { status: 200, body: `Success: LoRA adapter '${name}' removed successfully.` }
      : { status: 404, body: { error: { message: `The lora adapter '${name}' cannot be found.` } } };
  }

  #evict(adapter: string | undefined): void {
    if (adapter === undefined || this.faults.evictions === 0 || !this.loaded.delete(adapter)) return;
    this.faults.evictions--;
  }

  async #complete(body: Body): Promise<Reply> {
    const {
      model,
      prompt,
      max_tokens = 16,
      temperature,
      seed,
    } = body as unknown as {
      model: string;
      prompt: number[];
      max_tokens?: number;
      temperature: number;
      seed: number;
    };
    const adapter = model === 'base' ? undefined : model;
    this.#evict(adapter);
    if (adapter !== undefined && !this.loaded.has(adapter)) {
      return { status: 404, body: { error: { message: `The model \`${model}\` does not exist.` } } };
    }
    const sampled = await this.#sample(adapter, prompt, max_tokens, temperature, seed);
    if (sampled.reply) return sampled.reply;
    const { tokens, logprobs, finish } = sampled;
    const impostor = this.faults.impostors > 0 && this.faults.impostors-- > 0;
    const choice = {
      index: 0,
      text: '',
      token_ids: tokens,
      logprobs: { token_logprobs: logprobs, tokens: tokens.map(String) },
      finish_reason: finish,
    };
    return { status: 200, body: { object: 'text_completion', model: impostor ? 'base' : model, choices: [choice] } };
  }

  async #generate(body: Body): Promise<Reply> {
    const {
      input_ids,
      sampling_params: s,
      lora_path,
    } = body as unknown as {
      input_ids: number[];
      sampling_params: { max_new_tokens: number; temperature: number; sampling_seed: number };
      lora_path?: string;
    };
    this.#evict(lora_path);
    if (lora_path !== undefined && !this.loaded.has(lora_path)) {
      return { status: 400, body: { error: { message: `LoRA adapter ${lora_path} is not loaded` } } };
    }
    const sampled = await this.#sample(lora_path, input_ids, s.max_new_tokens, s.temperature, s.sampling_seed);
    if (sampled.reply) return sampled.reply;
    const { tokens, logprobs, finish } = sampled;
    return {
      status: 200,
      body: {
        text: '',
        output_ids: tokens,
        meta_info: {
          finish_reason: { type: finish },
          output_token_logprobs: tokens.map((id, i) => [logprobs[i], id, null]),
        },
      },
    };
  }

  async #sample(
    adapter: string | undefined,
    ids: readonly number[],
    maxTokens: number,
    temperature: number,
    seed: number,
  ): Promise<Sampled> {
    const { faults } = this;
    if (faults.errors > 0) {
      faults.errors--;
      return { reply: { status: 500, body: { error: 'out of luck' } } };
    }
    if (faults.aborts > 0) {
      faults.aborts--;
      return { tokens: [1, 2], logprobs: [-1, -1], finish: 'abort' };
    }
    const path = adapter === undefined ? undefined : this.loaded.get(adapter)!;
    const work = this.#busy.then(() => this.#compute(path, ids, maxTokens, temperature, seed));
    this.#busy = work.catch(() => {});
    const { tokens, logprobs, ended } = await work;
    const reported = logprobs.map((one) => one + this.bias);
    this.answers.push({ adapter, tokens, logprobs: reported });
    return { tokens, logprobs: reported, finish: ended ? 'stop' : 'length' };
  }

  async #compute(
    path: string | undefined,
    ids: readonly number[],
    maxTokens: number,
    temperature: number,
    seed: number,
  ) {
    const values = path === undefined ? nothing(this.#config).values : readAdapter(path, this.#config).values;
    this.#policy.forget();
    this.#policy.load({ version: 0, values });
    const episode = this.#episode++;
    const none = new Int32Array(0);
    const given = {
      prompt: Int32Array.from(ids.slice(0, -1)),
      after: Int32Array.of(ids.at(-1)!),
      focus: [],
      mentions: new Map(),
      seed,
      maxTokens,
    };
    this.#policy.submit([
      {
        episode,
        group: episode,
        member: 0,
        groupSize: 1,
        turn: 0,
        observation: '',
        actions: none,
        newActions: [],
        samplingSeed: 0,
        temperature,
        given,
      },
    ]);
    for (;;) {
      const [acted] = await this.#policy.step();
      if (!acted) continue;
      this.#policy.release([episode]);
      const { decision } = acted;
      if (decision?.kind !== 'tokens') throw new Error('no tokens');
      return {
        tokens: [...decision.tokens],
        logprobs: [...decision.logprobs],
        ended: decision.tokens.length < maxTokens,
      };
    }
  }
}

/** An adapter that changes nothing. */
function nothing(config: ModelConfig) {
  const zeros = ({ name, shape }: { name: string; shape: readonly number[] }) =>
    [name, new Float32Array(shape[0]! * shape[1]!)] as const;
  return { version: 0, values: Object.fromEntries(parameterSpecs(config).map(zeros)) };
}

async function textOf(request: IncomingMessage): Promise<string> {
  const parts: Buffer[] = [];
  for await (const part of request) parts.push(part as Buffer);
  return Buffer.concat(parts).toString('utf8');
}
