/** Remote hosts in one process: a machine that has env hosts and a pool that uses them, over a switchboard in memory. */
import { HostServer } from '../../actors/env/host-server.ts';
import { RemoteHosts, type RemoteHostsOptions } from '../../actors/env/remote-hosts.ts';
import { HOST_PROTOCOL, type HostCall } from '../../src/cluster/host-call.ts';
import { MemoryExchange, type MemorySwitchboard } from '../../src/cluster/memory-switchboard.ts';
import { systemClock } from '../../src/core/clock.ts';
import { UserError } from '../../src/core/errors.ts';
import { Rng } from '../../src/core/rng.ts';

/** Machines with env hosts, and the way to them. */
export class RemoteMachines {
  readonly exchange = new MemoryExchange(systemClock, Rng.fromSeed(1));
  readonly servers: HostServer[] = [];
  readonly connections: MemorySwitchboard[] = [];
  readonly notices: string[] = [];

  /** Adds a machine. @param moduleOf world of a call */
  add(places: number, moduleOf: (call: HostCall) => URL): HostServer {
    const switchboard = this.exchange.connect();
    const name = `machine-${this.servers.length}`;
    const onNotice = (text: string) => void this.notices.push(text);
    const server = new HostServer({ switchboard, clock: systemClock, name, places, moduleOf, onNotice });
    server.start();
    this.servers.push(server);
    this.connections.push(switchboard);
    return server;
  }

  hosts(of: Partial<RemoteHostsOptions> = {}): RemoteHosts {
    return new RemoteHosts({
      switchboard: this.exchange.connect(),
      clock: systemClock,
      identity: { protocol: HOST_PROTOCOL, longplay: 'test', env: 'test' },
      heapMb: undefined,
      variables: {},
      command: 'longplay worker',
      onNotice: (text) => this.notices.push(text),
      ...of,
    });
  }

  async close(): Promise<void> {
    for (const server of this.servers) await server.close();
  }
}

/** World that no machine of a test has. */
export function noModule(): URL {
  throw new UserError('BAD_CONFIG', 'the run has env "other", here it is "test"');
}
