/** Circuits: voltage spreads one component a pass; nothing flows, contacts only carry a voltage or reach ground. */
import type { Thing } from './thing.ts';

const VOLTS = 9;
/** Components a search for ground, or for names, passes at most. */
const REACH = 10;

/** Contact of the same thing that is not this one. */
function findOtherContact(contact: Thing): Thing {
  const [one, two] = contact.contact!.owner.terminals!;
  return contact === one ? two : one;
}

/** Live: the contact is connected to one that has 9 volts. */
function live(contact: Thing): boolean {
  return contact.contact?.connection?.contact?.volts === VOLTS;
}

function conducts(thing: Thing): boolean {
  const { circuit } = thing.kind;
  if (circuit === 'none') return thing.matter?.electric === true;
  return circuit !== 'wire' || thing.matter === null || thing.matter.electric;
}

/** Grounded: a chain of components leads from the contact to the 0-volt side of a generator. */
function isGrounded(contact: Thing): boolean {
  let at = contact;
  for (let step = 0; step <= REACH; step++) {
    const next = at.contact!.connection;
    if (!next) return false;
    const owner = next.contact!.owner;
    if (owner.kind.circuit === 'generator') return next.contact!.volts === 0;
    if (!conducts(owner)) return false;
    if (owner.kind.circuit === 'switch' && !owner.device!.on) return false;
    at = findOtherContact(next);
  }
  return false;
}

/** Conducts through one thing, one pass: its voltage comes from what its contacts touch. */
export function conduct(thing: Thing): void {
  const { circuit } = thing.kind;
  // What was never connected carries no voltage.
  if (!thing.terminals || (!thing.plugged && (circuit === 'none' || circuit === 'wire'))) return;
  const [one, two] = thing.terminals;
  const a = one.contact!;
  const b = two.contact!;
  switch (circuit) {
    case 'generator': {
      const on = thing.device!.on;
      a.volts = on ? VOLTS : null;
      b.volts = on ? 0 : null;
      return;
    }
    case 'user': {
      const powered = a.connection !== null && b.connection !== null && isGrounded(one) && live(two);
      thing.device!.on = powered;
      if (powered) a.volts = VOLTS;
      return;
    }
    case 'switch':
      // It leads to ground while on, but carries no voltage.
      return;
  }
  if (!conducts(thing)) {
    a.volts = null;
    b.volts = null;
    return;
  }
  if (!a.connection || !b.connection) return;
  if (isGrounded(one) && live(two)) a.volts = VOLTS;
  else if (isGrounded(two) && live(one)) b.volts = VOLTS;
}

/** True when wires connect the cathode (terminal 2) of `thing` with a component of one of these names. */
export function isConnectedTo(thing: Thing, names: readonly string[]): boolean {
  return thing.terminals !== null && leadsTo(thing.terminals[1], names, REACH);
}

function leadsTo(side: Thing, names: readonly string[], left: number): boolean {
  const next = side.contact!.connection;
  if (!next || left <= 0) return false;
  const owner = next.contact!.owner;
  return names.includes(owner.name) || leadsTo(findOtherContact(next), names, left - 1);
}
