/** Circuits of SciWorld: what carries voltage, what reaches ground, and what lights up. */
import { describe, expect, it } from 'vitest';
import { isConnectedTo } from '../../../envs/sciworld/electricity.ts';
import { disconnect, type Thing } from '../../../envs/sciworld/thing.ts';
import { join, smallWorld } from '../../support/small-sciworld.ts';

/** Ticks after which voltage has spread through any circuit of these tests. */
const SPREAD = 8;

const anode = (thing: Thing) => thing.terminals![0];
const cathode = (thing: Thing) => thing.terminals![1];

/** A source, a bulb and two wires, connected rightly; `middle` stands between the bulb and one of the wires. */
function circuit({ source = 'battery', user = 'red light bulb', middle = '', place = 'workshop' } = {}) {
  const small = smallWorld(place);
  const parts = {
    source: small.put(source),
    bulb: small.put(user),
    red: small.put('red wire'),
    black: small.put('black wire'),
  };
  const { source: from, bulb, red, black } = parts;
  join(anode(from), anode(red));
  join(cathode(from), anode(black));
  join(cathode(black), anode(bulb));
  let between: Thing | undefined;
  if (middle === '') join(cathode(red), cathode(bulb));
  else {
    between = small.put(middle);
    const wire = small.put('blue wire');
    join(cathode(red), anode(between));
    join(cathode(between), anode(wire));
    join(cathode(wire), cathode(bulb));
  }
  return { ...small, ...parts, between };
}

/** The battery in the room of a thing. */
const connectedBattery = (thing: Thing) => thing.parent!.contents.find(({ kind }) => kind.id === 'battery')!;

describe('a closed circuit', () => {
  it.each(['red light bulb', 'electric buzzer', 'electric motor'])('turns on a %s within a few ticks', (user) => {
    const { bulb, pass } = circuit({ user });
    expect(bulb.device!.on).toBe(false);
    pass(SPREAD);
    expect(bulb.device!.on).toBe(true);
  });

  it('lights no bulb the wrong way round', () => {
    const { bulb, red, black, pass } = circuit();
    disconnect(bulb);
    join(cathode(black), cathode(bulb));
    join(cathode(red), anode(bulb));
    pass(SPREAD);
    expect(bulb.device!.on).toBe(false);
  });

  it('goes dark when a wire is taken away', () => {
    const { bulb, red, pass } = circuit();
    pass(SPREAD);
    disconnect(red);
    pass(SPREAD);
    expect(bulb.device!.on).toBe(false);
  });

  it('lights a broken bulb too: only hands cannot switch it', () => {
    const { bulb, pass } = circuit();
    bulb.device!.broken = true;
    pass(SPREAD);
    expect(bulb.device!.on).toBe(true);
  });

  it('needs both wires', () => {
    const { bulb, black, pass } = circuit();
    disconnect(black);
    pass(SPREAD);
    expect(bulb.device!.on).toBe(false);
  });
});

describe('what stands in the circuit', () => {
  it.each([
    ['iron block', true],
    ['metal fork', true],
    ['aluminum foil', true],
    ['metal pot', true],
    ['plastic fork', false],
    ['wood block', false],
    ['glass cup', false],
    ['sodium chloride', false],
    ['apple', false],
  ])('%s: the bulb is lit, %s', (middle, lit) => {
    const { bulb, pass } = circuit({ middle });
    pass(SPREAD);
    expect(bulb.device!.on).toBe(lit);
  });

  it('conducts by its own flag, not by its material', () => {
    const { bulb, between, pass } = circuit({ middle: 'unknown substance' });
    between!.matter!.electric = false;
    pass(SPREAD);
    expect(bulb.device!.on).toBe(false);
    between!.matter!.electric = true;
    pass(SPREAD);
    expect(bulb.device!.on).toBe(true);
  });

  it('passes through no switch on the side of the voltage, on or off', () => {
    const { bulb, between, pass } = circuit({ middle: 'switch' });
    pass(SPREAD);
    expect(bulb.device!.on).toBe(false);
    between!.device!.on = true;
    pass(SPREAD);
    expect(bulb.device!.on).toBe(false);
  });

  it('keeps a part from ground where a switch on that side is off', () => {
    const { bulb, black, put, pass } = circuit();
    const [between, wire] = [put('switch'), put('blue wire')];
    disconnect(black);
    const [battery] = [connectedBattery(bulb)];
    join(cathode(battery), anode(black));
    join(cathode(black), anode(between));
    join(cathode(between), anode(wire));
    join(cathode(wire), anode(bulb));
    pass(SPREAD);
    expect(bulb.device!.on).toBe(false);
    between.device!.on = true;
    pass(SPREAD);
    expect(bulb.device!.on).toBe(true);
  });

  it('loses its voltage each tick where it does not conduct', () => {
    const { between, pass } = circuit({ middle: 'plastic fork' });
    for (const end of between!.terminals!) end.contact!.volts = 9;
    pass();
    expect(between!.terminals!.map(({ contact }) => contact!.volts)).toEqual([null, null]);
  });
});

describe('sources', () => {
  it('have nine volts on the anode and ground on the cathode, while on', () => {
    const small = smallWorld();
    const generator = small.put('gas generator');
    const volts = () => generator.terminals!.map(({ contact }) => contact!.volts);
    small.pass();
    expect(volts()).toEqual([null, null]);
    generator.device!.on = true;
    small.pass();
    expect(volts()).toEqual([9, 0]);
  });

  it.each([
    ['battery', true],
    ['generator', true],
    ['gas generator', false],
    ['nuclear generator', false],
  ])('%s: on from the start, %s', (source, on) => {
    const { bulb, pass } = circuit({ source });
    pass(SPREAD);
    expect(bulb.device!.on).toBe(on);
  });

  it.each(['solar panel', 'wind generator'])('%s runs outside and nowhere else', (source) => {
    for (const [place, lit] of [
      ['outside', true],
      ['workshop', false],
    ] as const) {
      const { bulb, pass } = circuit({ source, place });
      pass(SPREAD);
      expect([place, bulb.device!.on]).toEqual([place, lit]);
    }
  });

  it('run in open boxes outside, not in closed ones, broken or not', () => {
    const small = smallWorld('outside');
    const closet = small.put('closet');
    const panel = small.put('solar panel', closet);
    small.pass();
    expect(panel.device!.on).toBe(false);
    closet.container!.open = true;
    small.pass();
    expect(panel.device!.on).toBe(true);
    panel.device!.broken = true;
    small.pass();
    expect(panel.device!.on).toBe(true);
  });
});

describe('being connected by name', () => {
  it('follows the chain from either side', () => {
    const { bulb, red, source } = circuit();
    expect(isConnectedTo(bulb, ['battery'])).toBe(true);
    expect(isConnectedTo(red, ['battery'])).toBe(true);
    expect(isConnectedTo(source, ['red light bulb'])).toBe(true);
    expect(isConnectedTo(bulb, ['solar panel', 'wind generator'])).toBe(false);
  });

  it('is not given where the chain is cut', () => {
    const { bulb, red, black } = circuit();
    disconnect(red);
    disconnect(black);
    expect(isConnectedTo(bulb, ['battery'])).toBe(false);
  });

  it('reaches as far as ten components', () => {
    const chain = (length: number) => {
      const small = smallWorld();
      const bulb = small.put('red light bulb');
      let end = cathode(bulb);
      for (let i = 0; i < length; i++) {
        const wire = small.put('wire');
        join(end, anode(wire));
        end = cathode(wire);
      }
      join(end, anode(small.put('battery')));
      return bulb;
    };
    expect(isConnectedTo(chain(9), ['battery'])).toBe(true);
    expect(isConnectedTo(chain(10), ['battery'])).toBe(false);
  });

  it('ends in a circle of wires', () => {
    const small = smallWorld();
    const [one, two] = [small.put('red wire'), small.put('blue wire')];
    join(anode(one), anode(two));
    join(cathode(one), cathode(two));
    expect(isConnectedTo(one, ['battery'])).toBe(false);
    small.pass(SPREAD);
    expect(anode(one).contact!.volts).toBeNull();
  });
});

describe('disconnecting', () => {
  it('cuts both ends and returns whether there was something to cut', () => {
    const { red, bulb, source } = circuit();
    expect(disconnect(red)).toBe(true);
    expect([cathode(bulb).contact!.connection, anode(source).contact!.connection]).toEqual([null, null]);
    expect(disconnect(red)).toBe(false);
  });
});
