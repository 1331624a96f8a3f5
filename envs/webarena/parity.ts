/**
 * Parity with recordings of WebArena and of AgentGym's fork: observations from recorded nodes and rectangles, action
 * texts, evaluators, prompt texts, the server's exchanges, the paper's split. No browser is needed.
 *
 * Left out, as the recordings' page lists: texts that NLTK's sentence splitter would cut, and observations that a live
 * browser made during the server's exchanges (they are taken from the recording).
 */
import { UserError } from '../../src/core/errors.ts';
import type { Difference, Parity, ParityCounts } from '../../src/core/parity.ts';
import { strip } from '../../src/core/python-text.ts';
import { blocksOf, describeAction, turnText } from './describe.ts';
import {
  cleanAnswer,
  type Evaluation,
  type EvaluationPage,
  EvaluatorError,
  exactMatch,
  type HtmlTarget,
  mustInclude,
  programHtml,
  redditPostUrl,
  stringMatch,
  urlMatch,
} from './evaluate.ts';
import { type Action, parseAction } from './grammar.ts';
import { Float } from './python.ts';
import { failsBeforehand, ServerEpisode, type TaskConfig } from './server-episode.ts';
import { PAPER_SPLIT } from './split.ts';
import { tokenize } from './tokenize.ts';
import { type AxNode, type AxProperty, observationText, printTree, type Rect } from './tree.ts';
import { type SiteBases, toLocal, toPublic } from './urls.ts';

type Report = (difference: Difference) => void;
type Row = Readonly<Record<string, unknown>>;

/** Site bases under which prompts and exchanges were recorded. */
const BASES: SiteBases = {
  reddit: 'http://127.0.0.1:9999',
  shopping: 'http://127.0.0.1:7770',
  shopping_admin: 'http://127.0.0.1:7780/admin',
  gitlab: 'http://127.0.0.1:8023',
  wikipedia: 'http://127.0.0.1:8888/wikipedia_en_all_maxi_2022-05/A/User:The_other_Kiwix_guy/Landing',
  map: 'http://127.0.0.1:3000',
  homepage: 'http://127.0.0.1:4399',
};

export const parity: Parity = async (records, report) => {
  const rows = records as readonly Row[];
  const has = (key: string) =>
    rows.length > 0 && rows.every((row) => row !== null && typeof row === 'object' && key in row);
  if (has('nodes') && has('rects')) return replayObservations(rows, report);
  if (has('call')) return replayServer(rows as unknown as readonly Exchange[], report);
  if (has('kind') && rows.some(({ kind }) => isEvaluatorKind(kind))) return replayEvaluators(rows, report);
  if (has('kind')) return replayPrompts(rows, report);
  if (has('input')) return replayActions(rows, report);
  if (rows.length === 1 && has('train') && has('test')) return replaySplit(rows[0]!, report);
  throw new UserError(
    'BAD_TRACE',
    'webarena: expected observations, actions, evaluators, prompts, exchanges or a split',
  );
};

function compare(report: Report, where: string, what: string, expected: unknown, got: unknown): void {
  if (JSON.stringify(expected) !== JSON.stringify(got)) report({ where, what, expected, got });
}

interface RecordedNode {
  readonly nodeId: string;
  readonly childIds: readonly string[];
  readonly parentId?: string;
  readonly backendDOMNodeId?: number;
  readonly role?: string;
  readonly name?: string;
  readonly properties?: readonly AxProperty[];
}

function replayObservations(rows: readonly Row[], report: Report): ParityCounts {
  for (const [n, row] of rows.entries()) {
    const rects = row.rects as Readonly<Record<string, Rect | null>>;
    const nodes = (row.nodes as readonly RecordedNode[]).map((node): AxNode => {
      const rect = node.backendDOMNodeId === undefined ? null : (rects[node.backendDOMNodeId] ?? null);
      return {
        id: node.nodeId,
        childIds: node.childIds ?? [],
        parentId: node.parentId,
        inDom: node.backendDOMNodeId !== undefined,
        role: node.role,
        name: node.name,
        properties: node.properties ?? [],
        rect: node.role === 'RootWebArea' ? [0, 0, 10, 10] : rect,
      };
    });
    const screen = row.screen as [number, number];
    const tree = printTree(nodes, { fidelity: 'original', dialect: 'chromium', screen });
    const text = observationText(row.tabs as string[], row.current as number, tree.text);
    compare(report, `line ${n + 1} (page ${row.page}, step ${row.step})`, 'observation', row.observation, text);
  }
  return { episodes: rows.length, steps: rows.length };
}

function replayActions(rows: readonly Row[], report: Report): ParityCounts {
  for (const row of rows) {
    const got = parseAction(String(row.input), 'original');
    const expected = 'ok' in row ? { ok: row.ok } : { error: row.error };
    compare(report, `action ${row.i}`, JSON.stringify(row.input), sortKeys(expected), sortKeys(got));
  }
  return { episodes: rows.length, steps: 0 };
}

/** The same value with the keys of every object in order. */
function sortKeys(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(sortKeys);
  if (value === null || typeof value !== 'object') return value;
  const entries = Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1));
  return Object.fromEntries(entries.map(([key, item]) => [key, sortKeys(item)]));
}

const EVALUATOR_KINDS = [
  ...['clean_answer', 'exact_match', 'must_include', 'tokenize', 'url_match', 'string_match', 'program_html'],
  ...['program_html_seq', 'reddit_get_post_url'],
];

function isEvaluatorKind(kind: unknown): boolean {
  return EVALUATOR_KINDS.includes(String(kind));
}

async function replayEvaluators(rows: readonly Row[], report: Report): Promise<ParityCounts> {
  for (const row of rows) {
    const observed: Row = await answerOf(row).catch((thrown: unknown): Row => {
      if (!(thrown instanceof EvaluatorError)) throw thrown;
      return { error: { class: thrown.name, message: thrown.message } };
    });
    const { i, kind, args, ...expected } = row;
    const got = { ...observed };
    for (const key of ['log', 'judge_calls']) if (!(key in expected)) delete got[key as keyof typeof got];
    compare(
      report,
      `evaluator ${i} (${kind})`,
      JSON.stringify(args),
      sortKeys(expected),
      sortKeys({ ...logged.get(row), ...got }),
    );
  }
  return { episodes: rows.length, steps: 0 };
}

/** Side observations of a row (calls on the page, calls of the judge), also where the evaluator threw. */
const logged = new WeakMap<Row, Row>();

async function answerOf(row: Row): Promise<Row> {
  const args = row.args as readonly unknown[];
  const [a, b] = args as readonly string[];
  switch (row.kind) {
    case 'clean_answer':
      return { ok: cleanAnswer(a!) };
    case 'exact_match':
      return { ok: exactMatch(a!, b!) };
    case 'must_include':
      return { ok: mustInclude(a!, b!, Boolean(args[2])) };
    case 'tokenize':
      return { ok: tokenize(a!) };
    case 'reddit_get_post_url':
      return { ok: redditPostUrl(a!) };
    case 'url_match':
      return { ok: urlMatch(args[0] as Evaluation, b!) };
    case 'string_match': {
      const calls = { judge_calls: 0 };
      logged.set(row, calls);
      const judge = async () => {
        calls.judge_calls++;
        return (args[2] as string | null) ?? 'correct';
      };
      return { ok: await stringMatch(args[0] as Evaluation, '', b!, judge) };
    }
    case 'program_html':
    case 'program_html_seq': {
      const whole = row.kind === 'program_html_seq';
      const targets = (whole ? args[0] : [args[0]]) as readonly HtmlTarget[];
      const url = whole ? String(args[2]) : 'http://r.x/f/a/1/t/c';
      const source = whole ? '<p>page</p>' : '<html><title>page</title>page body &amp; more</html>';
      const page = new ScriptedPage(url, source, args[1], Boolean(args[3]));
      logged.set(row, { log: page.log });
      return { ok: await programHtml({ eval_types: ['program_html'], program_html: targets }, page) };
    }
    default:
      throw new UserError('BAD_TRACE', `webarena: no evaluator ${JSON.stringify(row.kind)}`);
  }
}

/** A page that answers as the recording's stand-in did, and logs the calls it received. */
class ScriptedPage implements EvaluationPage {
  readonly log: unknown[] = [];
  #url: string;
  readonly #source: string;
  readonly #value: unknown;
  readonly #throws: boolean;

  constructor(url: string, source: string, value: unknown, throws: boolean) {
    this.#url = url;
    this.#source = source;
    this.#value = isFloat(value) ? new Float(value.float) : value;
    this.#throws = throws;
  }

  url(): string {
    return this.#url;
  }

  async goto(url: string): Promise<void> {
    this.log.push(['goto', url]);
    this.#url = url;
  }

  async content(): Promise<string> {
    this.log.push(['content']);
    return this.#source;
  }

  async evaluate(source: string): Promise<unknown> {
    this.log.push(['evaluate', source]);
    if (this.#throws) throw new Error('the page throws');
    return this.#value;
  }
}

function isFloat(value: unknown): value is { float: number } {
  return value !== null && typeof value === 'object' && 'float' in value;
}

function replayPrompts(rows: readonly Row[], report: Report): ParityCounts {
  for (const row of rows) {
    const where = `prompt ${row.i} (${row.kind})`;
    const input = row.input as string;
    if (row.kind === 'url_to_real') compare(report, where, input, row.output, toPublic(input, BASES));
    else if (row.kind === 'url_to_local') compare(report, where, input, row.output, toLocal(input, BASES));
    else if (row.kind === 'prompt') {
      const { observation, url, objective, previous_action } = row.input as Readonly<Record<string, string>>;
      const turn = { observation: observation!, url: url!, objective: objective!, previousAction: previous_action! };
      compare(report, where, 'turn', row.output, turnText(turn, BASES));
    } else if (row.kind === 'describe') {
      const parsed = parseAction(input, 'original');
      const lines = new Map(Object.entries(row.nodes as Readonly<Record<string, string>>));
      compare(
        report,
        where,
        input,
        row.output,
        'ok' in parsed ? describeAction(parsed.ok, lines) : parsed.error.message,
      );
    } else if (row.kind === 'response') {
      const { kind, input: _input, i, ...expected } = row;
      compare(report, where, JSON.stringify(input), sortKeys(expected), sortKeys(responseOf(input)));
    } else throw new UserError('BAD_TRACE', `webarena: no prompt of kind ${JSON.stringify(row.kind)}`);
  }
  return { episodes: rows.length, steps: 0 };
}

/** Response of both sides to a model's reply. */
function responseOf(reply: string): Row {
  const blocks = blocksOf(reply);
  const [block] = blocks;
  if (block === undefined) {
    const message = `Cannot parse action from response ${reply}`;
    return { client_blocks: [], error: { class: 'ActionParsingError', message } };
  }
  const extracted = toLocal(strip(block), BASES);
  const parsed = parseAction(extracted, 'original');
  const answer = { client_blocks: blocks, extracted, parses: 'ok' in parsed };
  return 'error' in parsed ? { ...answer, error: parsed.error } : answer;
}

interface RecordedInfo {
  readonly page: { readonly url: string; readonly content: string };
  readonly fail_error: string;
  readonly observation_metadata: {
    readonly text: { readonly obs_nodes_info: Readonly<Record<string, { text: string }>> };
  };
}

interface Exchange {
  readonly i: number;
  readonly call: 'create' | 'reset' | 'observation' | 'observation_metadata' | 'step' | 'close' | 'reset_missing';
  readonly args: readonly unknown[];
  readonly result?: unknown;
  readonly raises?: { readonly class: string; readonly message: string };
}

/** The tasks the exchanges were recorded with. */
const SERVER_TASKS: readonly TaskConfig[] = [
  {
    eval_types: ['string_match'],
    reference_answers: { must_include: ['12.00'] },
  },
  { eval_types: ['url_match'], reference_url: `${BASES.shopping}/form.html`, url_note: 'GOLD in PRED' },
  {
    eval_types: ['program_html'],
    program_html: [
      { url: 'last', locator: "document.querySelector('#q').outerText", required_contents: { must_include: ['Ann'] } },
    ],
  },
  { eval_types: ['string_match'], reference_answers: { fuzzy_match: 'N/A' }, string_note: '' },
].map((evaluation, task_id) => ({
  task_id,
  sites: ['shopping'],
  intent: '',
  start_url: `${BASES.shopping}/${task_id === 2 ? 'form' : 'shop'}.html`,
  eval: evaluation,
}));

async function replayServer(exchanges: readonly Exchange[], report: Report): Promise<ParityCounts> {
  const replay = new ServerReplay(report);
  for (const exchange of exchanges) await replay.take(exchange);
  return { episodes: replay.episodes, steps: replay.steps };
}

interface Open {
  readonly episode: ServerEpisode;
  at: { readonly observation: string; readonly url: string; readonly lines: ReadonlyMap<string, string> };
  tabs: number;
}

/** The server's environments; pages, lines and locator values come from each recorded result. */
class ServerReplay {
  episodes = 0;
  steps = 0;
  readonly #report: Report;
  readonly #open = new Map<number, Open | undefined>();

  constructor(report: Report) {
    this.#report = report;
  }

  async take(exchange: Exchange): Promise<void> {
    const env = Number(exchange.args[0] ?? 0);
    if (exchange.call === 'create') this.#open.set(env, undefined);
    else if (exchange.call === 'reset') this.#reset(env, exchange);
    else if (exchange.call === 'close') this.#open.delete(env);
    else if (exchange.call === 'observation' && exchange.raises === undefined) {
      const open = this.#open.get(env);
      if (open) this.#expect(exchange, 'observation', omitTree(exchange.result), omitTree(open.episode.text));
    } else if (exchange.call === 'step') await this.#step(env, exchange);
  }

  #expect(exchange: Exchange, what: string, expected: unknown, got: unknown): void {
    compare(this.#report, `exchange ${exchange.i} (${exchange.call})`, what, expected, got);
  }

  #reset(env: number, exchange: Exchange): void {
    const config = SERVER_TASKS[Number(exchange.args[2])];
    if (exchange.raises) {
      this.#expect(exchange, 'refusal of a task without a file', true, config === undefined);
      return;
    }
    const [first, info, sites, intent] = exchange.result as [{ text: string }, RecordedInfo, string[], string];
    this.episodes++;
    const start = { observation: first.text, url: info.page.url, lines: linesOf(info) };
    const task = { ...config!, intent };
    this.#expect(exchange, 'sites', sites, config!.sites);
    const judge = () => Promise.reject(new Error('judge unreachable'));
    this.#open.set(env, { episode: new ServerEpisode(task, BASES, judge, start), at: start, tabs: tabsOf(first.text) });
  }

  async #step(env: number, exchange: Exchange): Promise<void> {
    this.steps++;
    const reply = String(exchange.args[1]);
    if (exchange.raises) return;
    const [observation, reward, terminated, , info] = exchange.result as [
      string,
      number,
      boolean,
      boolean,
      RecordedInfo | null,
    ];
    const open = this.#open.get(env);
    if (!open) {
      // A file may begin in the middle of a session; only what needs no page is compared then.
      const block = blocksOf(reply)[0];
      const parsed = block === undefined ? undefined : parseAction(toLocal(strip(block), BASES), 'original');
      if (info === null && observation === String(env)) return; // an unknown environment: the KeyError's text
      if (info === null && block === undefined) {
        this.#expect(exchange, reply, observation, `Cannot parse action from response ${reply}`);
      } else if (parsed && 'error' in parsed) this.#expect(exchange, reply, observation, parsed.error.message);
      if (info) this.#open.set(env, this.#resumeOpen(observation, info));
      return;
    }
    let failed: string | undefined;
    const act = (action: Action) => {
      failed = failsBeforehand(action, open.at.lines, open.tabs);
      if (info) open.at = { observation: treeOf(observation) ?? '', url: info.page.url, lines: linesOf(info) };
      return { ...open.at, failError: failed || (info?.fail_error ?? '') };
    };
    const source = info?.page.content ?? '';
    const name = /\[\d+\] StaticText '([^']*Ann[^']*)'/.exec(observation)?.[1] ?? null;
    const page = new ScriptedPage(info?.page.url ?? '', source, name, false);
    const got = await open.episode.step(reply, { act, evaluation: page });
    const expected = { observation, reward, terminated, informed: info !== null };
    this.#expect(exchange, `answer to ${JSON.stringify(reply)}`, expected, got);
    if (info && failed) this.#expect(exchange, 'fail_error', info.fail_error, failed);
    if (info) open.tabs = tabsOf(observation);
  }

  /** An environment that was open when the file began, from its first recorded answer. */
  #resumeOpen(observation: string, info: RecordedInfo): Open {
    const intent = /\nOBJECTIVE: (.*)\nPREVIOUS ACTION: /.exec(observation)?.[1] ?? '';
    const task = { ...(SERVER_TASKS.find(({ task_id }) => INTENTS[task_id] === intent) ?? SERVER_TASKS[0]!), intent };
    const judge = () => Promise.reject(new Error('judge unreachable'));
    const start = { observation: treeOf(observation) ?? '', url: info.page.url, lines: linesOf(info) };
    return { episode: new ServerEpisode(task, BASES, judge, start), at: start, tabs: tabsOf(observation) };
  }
}

/** Intents by task, where the recordings show them. */
const INTENTS: readonly string[] = ['What is the price of the Travel Kettle?', 'Show me my cart'];

function linesOf(info: RecordedInfo): ReadonlyMap<string, string> {
  return new Map(Object.entries(info.observation_metadata.text.obs_nodes_info).map(([id, { text }]) => [id, text]));
}

/** Open tabs, as the first line lists them. */
function tabsOf(observation: string): number {
  const line = observation.replace(/^OBSERVATION:\n/, '').split('\n', 1)[0]!;
  return line.split(/ \| (?=Tab \d)/).length;
}

/** The page's text inside a turn. */
function treeOf(turn: string): string | undefined {
  return /^OBSERVATION:\n([\s\S]*)\nURL: [^\n]*\nOBJECTIVE: /.exec(turn)?.[1];
}

/** A turn without the page's text, which a live browser made. */
function omitTree(turn: unknown): unknown {
  return typeof turn === 'string' ? turn.replace(/^OBSERVATION:\n[\s\S]*\nURL: /, 'URL: ') : turn;
}

function replaySplit(row: Row, report: Report): ParityCounts {
  compare(report, 'split', 'train', row.train, PAPER_SPLIT.train);
  compare(report, 'split', 'test', row.test, PAPER_SPLIT.test);
  return { episodes: (row.train as unknown[]).length + (row.test as unknown[]).length, steps: 0 };
}
