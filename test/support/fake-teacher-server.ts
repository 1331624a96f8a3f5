/**
 * Stand-in for a teacher's server, for tests: real HTTP in vLLM's and OpenAI's forms of scored prompts, over a function that
 * scores, with the faults that servers have.
 */
import { createServer, type IncomingMessage, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';

/** Log-probability of each id given those before it; the first is never read. */
export type Scorer = (ids: readonly number[]) => readonly number[];

export interface FakeTeacherOptions {
  readonly score: Scorer;
  /** Forms that it knows; the others are ignored, as a server ignores keys that it does not know. */
  readonly forms?: readonly ('prompt_logprobs' | 'echo')[];
  /** Text of a token, where it tells them. */
  readonly decode?: (id: number) => string;
  readonly models?: readonly string[];
  /** Ids that it has: a prompt of others is refused. */
  readonly vocabSize?: number;
  readonly key?: string;
}

export class FakeTeacherServer {
  /** Prompts that were scored. */
  readonly prompts: (readonly number[])[] = [];
  /** Requests to come that answer 503. */
  busy = 0;
  readonly #options: FakeTeacherOptions;
  readonly #server: Server;

  private constructor(options: FakeTeacherOptions) {
    this.#options = options;
    this.#server = createServer(async (request, response) => {
      const { status, body } = await this.#answer(request);
      response.writeHead(status, { 'content-type': 'application/json' });
      response.end(JSON.stringify(body));
    });
  }

  static async start(options: FakeTeacherOptions): Promise<FakeTeacherServer> {
    const one = new FakeTeacherServer(options);
    await new Promise<void>((resolve) => one.#server.listen(0, '127.0.0.1', resolve));
    return one;
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  async close(): Promise<void> {
    this.#server.closeAllConnections();
    await new Promise((resolve) => this.#server.close(resolve));
  }

  async #answer(request: IncomingMessage): Promise<{ readonly status: number; readonly body: unknown }> {
    const { score, forms = ['prompt_logprobs'], decode, models = ['teacher'], vocabSize, key } = this.#options;
    let text = '';
    for await (const chunk of request) text += String(chunk);
    if (key !== undefined && request.headers.authorization !== `Bearer ${key}`) {
      return { status: 401, body: { error: 'no key' } };
    }
    if (request.url === '/v1/models') return { status: 200, body: { data: models.map((id) => ({ id })) } };
    if (request.url !== '/v1/completions') return { status: 404, body: { error: 'no such path' } };
    if (this.busy > 0) {
      this.busy--;
      return { status: 503, body: { error: 'busy' } };
    }
    const asked = JSON.parse(text) as {
      readonly model: string;
      readonly prompt: readonly number[];
      readonly prompt_logprobs?: number;
      readonly echo?: boolean;
    };
    if (!models.includes(asked.model)) return { status: 404, body: { error: `no model ${asked.model}` } };
    const { prompt } = asked;
    const beyond = vocabSize === undefined ? undefined : prompt.find((id) => id >= vocabSize);
    if (beyond !== undefined) return { status: 400, body: { error: `token id ${beyond} is out of vocabulary` } };
    this.prompts.push(prompt);
    const scores = score(prompt);
    const told = (id: number) => (decode ? { decoded_token: decode(id) } : {});
    const choice: Record<string, unknown> = { index: 0, text: ' x', finish_reason: 'length' };
    if (asked.prompt_logprobs !== undefined && forms.includes('prompt_logprobs')) {
      choice.prompt_logprobs = prompt.map((id, i) =>
        i === 0 ? null : { [id]: { logprob: scores[i], rank: 2, ...told(id) } },
      );
    }
    if (asked.echo && forms.includes('echo')) {
      choice.logprobs = {
        tokens: [...prompt.map((id) => decode?.(id)), ' x'],
        token_logprobs: [null, ...scores.slice(1), -0.5],
      };
    }
    return { status: 200, body: { model: asked.model, choices: [choice] } };
  }
}
