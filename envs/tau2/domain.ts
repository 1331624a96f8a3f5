/** Domains: what a folder `envs/tau2/<domain>/` gives to the world. */
import type { Tool } from '../../src/core/model-call.ts';
import { isRecord } from '../../src/core/record.ts';
import { once, readData } from './data-files.ts';
import { Environment, type Side, type Sides } from './environment.ts';
import type { RequestReading } from './phone-requests.ts';
import type { PyValue } from './python/values.ts';
import type { TauTask } from './tasks.ts';

/** Tool of a domain, as the original describes it. */
export interface DomainTool {
  readonly tool: Tool;
  readonly mutates: boolean;
}

/** Domain of τ²-bench. Whatever it reads from files is read when first used, and shared. */
export interface Domain {
  readonly id: string;
  /** Text of the policy. @param isSolo the variant for an agent without a user, where the domain has one */
  policy(isSolo: boolean): string;
  /** True where the domain can be played without a user. */
  readonly hasSolo: boolean;
  /** True where an episode has no user unless the options ask for one. */
  readonly isSoloByDefault?: boolean | undefined;
  /** Knowledge by which the scripted user finds the tools that it is asked to use; absent where it uses none. */
  readonly requests?: {
    readonly words: RequestReading['words'];
    /** State of the switch that a tool toggles, read from the user's database; undefined for other tools. */
    isOn(tool: string, database: PyValue): boolean | undefined;
  };
  /** Values that a choosing policy may always use in arguments, before those that the conversation has shown. */
  readonly values?: readonly string[] | undefined;
  /** Labels of tasks, e.g. kinds of problems. Absent: the number of gold actions that change a database. */
  readonly labels?: { readonly all: readonly string[]; of(task: TauTask): string } | undefined;
  /** Tasks in the order of the file. */
  tasks(): readonly TauTask[];
  /** Named splits: ids of tasks. `base` holds all tasks that are evaluated; `train` and `test` part it, where they exist. */
  splits(): Readonly<Record<string, readonly string[]>>;
  /** Tools of each side in the original's order. */
  tools(side: Side): readonly DomainTool[];
  /**
   * Makes the sides of a new episode, before the task prepares them. They share nothing that can change.
   * @param data databases of a task that changes them (`initialization_data`); absent: those of the file
   */
  open(data?: InitialData): Sides;
}

/** Changes of a task to the databases of its start. */
export interface InitialData {
  readonly agent?: PyValue | undefined;
  readonly user?: PyValue | undefined;
}

/** Opens an environment of a task as it is before the first message: its data, then its initial actions. */
export function openEnvironment(domain: Domain, task: TauTask | undefined, isSolo: boolean): Environment {
  const environment = new Environment(domain.open(task?.initialData), isSolo);
  for (const { side, name, args } of task?.initialActions ?? []) environment.run(side, name, args);
  return environment;
}

const toolsFile = once(() => JSON.parse(readData('tools.json.gz')) as Readonly<Record<string, unknown>>);

/** Reads the tools of a side from `data/tools.json.gz`; none where it has none. */
export function readTools(domain: string, side: Side): readonly DomainTool[] {
  const sides = toolsFile()[domain];
  const listed = isRecord(sides) ? sides[side === 'user' ? 'user' : 'agent'] : undefined;
  if (!Array.isArray(listed)) return [];
  return listed.map(({ mutates, schema }) => {
    const { name, description, parameters } = schema.function;
    return { tool: { name, description, parameters }, mutates };
  });
}

/** Tools as a toolkit looks them up. */
export function indexTools(tools: readonly DomainTool[]): ReadonlyMap<string, { readonly mutates: boolean }> {
  return new Map(tools.map(({ tool, mutates }) => [tool.name, { mutates }]));
}

/** Reads the named splits of a file. @param name path below `data/` */
export function readSplits(name: string): Readonly<Record<string, readonly string[]>> {
  return JSON.parse(readData(name));
}
