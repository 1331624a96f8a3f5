/**
 * Host processes, for untrusted environments. An env that exhausts its memory, its heap or its buffers ends a process
 * of its own, and the processes that it started end with it. Costs two system calls a step and serialisation instead of
 * shared memory.
 */
import { type HostChild, residenceOf, startHostChild } from './host-child.ts';
import { type Host, type HostFactory, type HostListener, type HostOptions, hostTask, startHostIn } from './hosts.ts';

export class HostProcesses implements HostFactory {
  readonly #heapMb: number | undefined;
  readonly #variables: Readonly<Record<string, string>>;
  readonly #children = new Set<HostChild>();

  /**
   * Makes a factory.
   * @param heapMb of each process, MiB; V8's own default where absent
   * @param variables environment variables of each process
   */
  constructor(heapMb: number | undefined, variables: Readonly<Record<string, string>>) {
    this.#heapMb = heapMb;
    this.#variables = variables;
  }

  start(options: HostOptions, listener: HostListener, startMs: number): Promise<Host> {
    const child = startHostChild({ heapMb: this.#heapMb, variables: this.#variables });
    this.#children.add(child);
    void child.ended.then(() => this.#children.delete(child));
    const { residence, setUp } = residenceOf(child);
    const envs = options.envs.map(({ shared: _, ...spec }) => spec); // memory is not shared with another process
    setUp.postMessage(hostTask({ ...options, envs }));
    return startHostIn(residence, listener, startMs);
  }

  async close(): Promise<void> {
    for (const child of this.#children) child.kill();
  }
}
