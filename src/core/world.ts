/**
 * A world is one folder, and its module is the `World`: `envs/<id>/index.ts`, or a user's own `./my/env.mjs`, exports
 * the members below by name. Nothing else in the framework knows a world.
 *
 * Only one of `createEnv` and `agentgym.client` is required. With rules (`createEnv`) a world is played here; without
 * them it is played through an AgentGym server. Everything else is optional: a world without `view` is read through
 * the default one, a world without `prompt` is described by its sentence alone.
 */
import type { AgentGymDialect } from './agentgym.ts';
import type { OpenChatModel } from './chat-model.ts';
import type { Draw } from './draw.ts';
import type { Env, EnvOptions, MaybePromise, Oracle } from './env.ts';
import type { Parity } from './parity.ts';
import type { WorldPrompt } from './prompt.ts';
import type { Screenshot } from './screenshot.ts';
import type { View } from './view.ts';

/** Context in which a host starts a world: what its process shares, and the path of the host. */
export interface StartContext {
  /** Result of `share` in the process that started this thread; undefined in a process host, and without `share`. */
  readonly shared?: unknown;
  /** Path of the env host, e.g. `/env-hosts/2`; something readable elsewhere. For messages and names of files. */
  readonly where: string;
  /** Opens a language model that the world talks to: a user, a judge. Absent where none can be reached, as in `check-env`. */
  readonly openChatModel?: OpenChatModel | undefined;
}

/** Resources that `start` made: an index, a browser, a connection. Shared by all sessions of one host. */
export interface Resources {
  /** Releases everything; called once, after the last session was closed. A killed host does not call it. */
  dispose(): MaybePromise<void>;
}

/** World: the exports of its module. */
export interface World<R extends Resources = Resources> {
  /** Description for `longplay envs`, one sentence, of a world without rules; one with rules has `Env.description`. */
  readonly description?: string;
  /**
   * Makes the rules. Without `resources` only facts are read (tasks, bounds, description): no session is opened then,
   * so what needs them may be absent.
   * @throws {UserError} BAD_CONFIG for an option the world does not have
   */
  createEnv?(options?: EnvOptions, resources?: R): Env;
  /**
   * Prepares what the sessions of one env host share, once per host (thread, process or inline) and set of options;
   * `createEnv` gets the result. It counts towards the time a host has to start.
   * @throws {UserError} for what the user has to change: a missing file, a browser that is not installed
   */
  start?(options: EnvOptions, context: StartContext): MaybePromise<R>;
  /**
   * Prepares what the env hosts of a process can hold together, before the first of them starts: for example a large table in a
   * SharedArrayBuffer. Each thread gets it as `StartContext.shared`; a process host starts without it.
   * @returns plain data, buffers among it
   * @throws {UserError} as `start`
   */
  share?(options: EnvOptions): MaybePromise<unknown>;
  /**
   * Marks a world of tools (tool-world.ts): its observations are model calls, its actions replies, both as JSON. Language models
   * read it through their own template, with its tools.
   */
  readonly tools?: true;
  /** View: the text that the local policy reads. */
  readonly view?: View;
  /** Makes the scripted solver. */
  createOracle?(options?: EnvOptions): Oracle;
  /** Draws the picture that console and viewer show. */
  readonly draw?: Draw;
  /** Path of the picture that an env kept of a state, where its options ask for some; the viewer shows it. */
  readonly screenshot?: Screenshot;
  /** Prompt for language models; a function where it depends on the options. */
  readonly prompt?: WorldPrompt | ((options: EnvOptions) => WorldPrompt);
  /** AgentGym's HTTP dialect. */
  readonly agentgym?: AgentGymDialect;
  /** Re-plays recordings of the original. */
  readonly parity?: Parity;
}
