/** Identity of remote hosts: what a run and the machines that have its env hosts must have in common. */
import { differingHost, HOST_PROTOCOL, type HostCall, type HostIdentity } from '../../src/cluster/host-call.ts';
import { longplayVersion } from '../../src/cluster/identity.ts';
import { UserError } from '../../src/core/errors.ts';
import { type ConfiguredEnv, isModulePath, pinnedEnv, resolvedEnvId, worldUrl } from '../../src/run/find-world.ts';

/** Name of any user's own world: where it lies differs by machine. */
const OWN = 'a module';

/** Identity of a configuration's world. A user's own is known by its bytes. */
export function hostIdentity(env: ConfiguredEnv): HostIdentity {
  const { sha256 } = pinnedEnv(env, '.');
  const common = { protocol: HOST_PROTOCOL, longplay: longplayVersion() };
  return sha256 === undefined ? { ...common, env: env.id } : { ...common, env: OWN, world: sha256 };
}

/**
 * URL of the world that a call is for, as this machine has it. A module's path is never taken from elsewhere.
 * @param own path of a user's module that is hosted here; none: worlds of the package
 * @throws {UserError} saying what differs
 */
export function moduleOf({ identity, options }: HostCall, own: string | undefined): URL {
  const refuse = (why: string) => new UserError('BAD_CONFIG', why);
  const isOwn = identity.env === OWN;
  if (isOwn && own === undefined) throw refuse("the run has a world of its user's own; name it here: --env ./env.mjs");
  if (!isOwn && own !== undefined) throw refuse(`hosts here are for ${own}, the run has the world '${identity.env}'`);
  const inner = typeof options.world === 'string' ? options.world : '';
  if (!isOwn && (isModulePath(identity.env) || isModulePath(inner))) throw refuse('the run names its world by a path');
  const id = isOwn ? resolvedEnvId(own!, process.cwd()) : identity.env;
  const why = differingHost(
    { ...identity, env: isOwn ? id : identity.env },
    { ...hostIdentity({ id, options }), env: id },
  );
  if (why !== undefined) throw refuse(why);
  return worldUrl(id, options);
}
