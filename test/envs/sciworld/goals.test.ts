/** Goals of SciWorld: the engine that counts them, and each type of goal by what it accepts and what it refuses. */
import { describe, expect, it } from 'vitest';
import { ACTIONS } from '../../../envs/sciworld/actions.ts';
import { points } from '../../../envs/sciworld/env.ts';
import * as types from '../../../envs/sciworld/goal-types.ts';
import { type Done, type Goal, Goals, Sight, type Verdict } from '../../../envs/sciworld/goals.ts';
import { kind } from '../../../envs/sciworld/kinds.ts';
import { makeAnimal, makePlant } from '../../../envs/sciworld/life.ts';
import { GAS, LIQUID, SOLID } from '../../../envs/sciworld/materials.ts';
import { insertById, type Thing } from '../../../envs/sciworld/thing.ts';
import { join, smallWorld } from '../../support/small-sciworld.ts';

/** Makes a goal with a given verdict. */
function goalWith(verdict: () => Verdict, extra: Partial<Goal> = {}): Goal {
  return { kind: 'Fixed', description: 'fixed', test: verdict, ...extra };
}
const yes = () => 'yes' as const;
const no = () => 'no' as const;

function engine(ordered: Goal[], optional: Goal[] = [goalWith(no)]) {
  const small = smallWorld();
  return { ...small, goals: new Goals(ordered, optional, small.world, []), thing: small.put('soap') };
}

describe('ordered goals', () => {
  it('are not looked at without a focus', () => {
    const { goals, thing } = engine([goalWith(yes)]);
    goals.tick(null);
    expect(goals.complete).toBe(false);
    goals.tick(thing);
    expect(goals.complete).toBe(true);
  });

  it('may be met several at once, in their order', () => {
    const { goals, thing } = engine([goalWith(yes), goalWith(yes), goalWith(no), goalWith(yes)]);
    goals.tick(thing);
    expect(goals.states.filter(({ ordered }) => ordered).map(({ met }) => met)).toEqual([true, true, false, false]);
  });

  it('drop the focus where they clear it, which ends the look', () => {
    const { goals, thing } = engine([goalWith(yes, { clearsFocus: true }), goalWith(yes)]);
    expect(goals.tick(thing)).toBeNull();
    expect(goals.states.map(({ met }) => met)).toEqual([true, false, false]);
    expect(goals.tick(thing)).toBe(thing);
    expect(goals.complete).toBe(true);
  });

  it('remember the last thing that met one', () => {
    const { goals, thing } = engine([goalWith(yes), goalWith(no)]);
    expect(goals.sight.last).toBeNull();
    goals.tick(thing);
    expect(goals.sight.last).toBe(thing);
  });

  it('that fail cost everything until the task is reset', () => {
    let verdict: Verdict = 'failed';
    const { goals, thing } = engine([goalWith(() => verdict)]);
    goals.tick(thing);
    expect([goals.score, goals.failed, goals.complete]).toEqual([-1, true, false]);
    verdict = 'yes';
    goals.tick(thing);
    expect([goals.score, goals.complete]).toEqual([-1, true]);
    goals.reset();
    expect([goals.score, goals.failed]).toEqual([0, false]);
  });
});

describe('optional goals', () => {
  it('wait for their keys, from any goal, in one look', () => {
    const { goals, thing } = engine(
      [goalWith(yes, { key: 'first' })],
      [
        goalWith(yes, { after: ['second'] }),
        goalWith(yes, { after: ['first'], key: 'second' }),
        goalWith(yes, { after: ['never'] }),
      ],
    );
    goals.tick(thing);
    expect(goals.states.filter(({ ordered }) => !ordered).map(({ met }) => met)).toEqual([true, true, false]);
  });

  it('are tested without a thing, then with the one in focus', () => {
    const seen: (Thing | null)[] = [];
    const { goals, thing } = engine(
      [goalWith(no)],
      [{ kind: 'Seen', description: '', test: (focus) => (seen.push(focus) > 99 ? 'yes' : 'no') }],
    );
    goals.tick(thing);
    goals.tick(null);
    expect(seen).toEqual([null, thing, null]);
  });

  it('once met stay met', () => {
    let verdict: Verdict = 'yes';
    const { goals } = engine([goalWith(no)], [goalWith(() => verdict)]);
    goals.tick(null);
    verdict = 'no';
    goals.tick(null);
    expect(goals.states[1]!.met).toBe(true);
  });

  it('go on after the ordered ones are complete', () => {
    const { goals, thing } = engine([goalWith(yes)], [goalWith(yes)]);
    goals.tick(thing);
    expect(goals.score).toBe(1);
  });

  it('are forgotten by a reset, their keys are not', () => {
    const { goals } = engine([goalWith(no)], [goalWith(yes, { key: 'a' })]);
    goals.tick(null);
    goals.reset();
    expect(goals.states[1]!.met).toBe(false);
    expect(goals.progress).toContain('Completed keys: a');
  });
});

describe('the score', () => {
  const scoreOf = (ordered: boolean[], optional: boolean[]) => {
    const { goals, thing } = engine(
      ordered.map((met) => goalWith(met ? yes : no)),
      optional.map((met) => goalWith(met ? yes : no)),
    );
    goals.tick(thing);
    return goals.score;
  };

  it.each([
    [[false, false, false], [false, false], 0],
    [[true, false, false], [false, false], 1 / 3],
    [[true, true, false], [true, false], 2 / 3 + 1 / 8],
    [[false, false], [true, true, true, true], 1 / 3],
    [[false], [true, false], 1 / 4],
    [[true], [true, true], 1],
    [[true, true, false], [true, true, true], 2 / 3 + 1 / 4],
  ])('of %j and optional %j is %d', (ordered, optional, score) => {
    expect(scoreOf(ordered, optional)).toBeCloseTo(score, 12);
  });

  it('is never above 1', () => {
    expect(scoreOf([true, true], [true, true, true])).toBe(1);
  });

  it.each([
    [0, 0],
    [0.125, 12],
    [0.135, 14],
    [0.375, 38],
    [0.005, 0],
    [0.015, 2],
    [1 / 3, 33],
    [2 / 3, 67],
    [1, 100],
    [-1, -100],
  ])('of %d is %i points: halves go to the even number', (score, expected) => {
    expect(points(score) + 0).toBe(expected);
  });

  it('is printed with the goals as in the original', () => {
    const { goals, thing } = engine([goalWith(yes), goalWith(no)], [goalWith(yes)]);
    goals.tick(thing);
    const rows = goals.progress.split('\n').filter((row) => row.includes('\t'));
    expect(rows).toEqual(['0\ttrue\tFixed\tfixed', '1\tfalse\tFixed\tfixed', '0\ttrue\tFixed\tfixed']);
  });
});

// ---- types of goals

/** A room with a sight of it, and a past that tests write. */
function scene(place = 'kitchen') {
  const small = smallWorld(place);
  const history: Done[] = [];
  const sight = new Sight(small.world, history);
  return {
    ...small,
    history,
    sight,
    did(name: string, ...things: Thing[]) {
      history.push({ action: ACTIONS.find((action) => action.name === name)!, things });
    },
  };
}

describe('goals about the thing in focus', () => {
  it('find: its raw name, in any case; another one fails, or not', () => {
    const { put, sight } = scene();
    const [soap, brick] = [put('soap'), put('brick')];
    expect(types.find('Soap', '').test(soap, sight)).toBe('yes');
    expect(types.find('soap', '').test(brick, sight)).toBe('failed');
    expect(types.find('soap', '', {}, false).test(brick, sight)).toBe('no');
    expect(types.find('soap', '').test(null, sight)).toBe('no');
  });

  it('find box: another box fails, other things do not', () => {
    const { put, sight } = scene();
    const goal = types.findBox('red box', '');
    expect(goal.test(put('red box'), sight)).toBe('yes');
    expect(goal.test(put('blue box'), sight)).toBe('failed');
    expect(goal.test(put('soap'), sight)).toBe('no');
  });

  it('find stage: a living thing of the species in the stage', () => {
    const { world, put, sight } = scene('outside');
    const goal = types.findStage('frog', 'tadpole', '');
    const frog = makeAnimal('frog', world, 'tadpole');
    expect(goal.test(frog, sight)).toBe('yes');
    frog.life!.stage = 'adult';
    expect(goal.test(frog, sight)).toBe('failed');
    expect(goal.test(makeAnimal('wolf', world), sight)).toBe('failed');
    expect(goal.test(put('soap'), sight)).toBe('failed');
    expect(goal.clearsFocus).toBe(true);
  });

  it('find plane: by letter or by surface', () => {
    const { put, sight } = scene('workshop');
    const plane = put('inclined plane');
    plane.plane = { letter: 'B', surface: 'steel', angle: 45, friction: 0.5, heights: new Map() };
    expect(types.findPlane('K', 'B', '', 'letter').test(plane, sight)).toBe('yes');
    expect(types.findPlane('K', 'steel', '', 'surface').test(plane, sight)).toBe('yes');
    expect(types.findPlane('K', 'glass', '', 'surface').test(plane, sight)).toBe('failed');
    expect(types.findPlane('K', 'B', '', 'letter').test(put('soap'), sight)).toBe('failed');
    plane.name = 'liquid steel';
    expect(types.findPlane('K', 'B', '', 'letter').test(plane, sight)).toBe('failed');
  });

  it.each([
    ['living', 'yes', 'yes', 'failed'],
    ['animal', 'yes', 'failed', 'failed'],
    ['plant', 'failed', 'yes', 'failed'],
  ] as const)('focus on %s: an animal %s, a plant %s, soap %s', (what, animal, plant, soap) => {
    const { world, put, sight } = scene('outside');
    const goal = types.focusLiving('K', '', what);
    expect(goal.test(makeAnimal('wolf', world), sight)).toBe(animal);
    expect(goal.test(makePlant('apple', 'adult', null, world), sight)).toBe(plant);
    expect(goal.test(put('soap'), sight)).toBe(soap);
  });

  it('focus on non-living: what lives fails, what cannot be moved does not count', () => {
    const { world, put, sight } = scene();
    const goal = types.focusNonLiving('');
    expect(goal.test(put('soap'), sight)).toBe('yes');
    expect(goal.test(put('stove'), sight)).toBe('no');
    expect(goal.test(makeAnimal('wolf', world), sight)).toBe('failed');
  });

  it('a state of matter, or fire where that counts too', () => {
    const { put, sight } = scene();
    const water = put('water');
    expect(types.isState(LIQUID, '').test(water, sight)).toBe('yes');
    expect(types.isState(GAS, '').test(water, sight)).toBe('no');
    const wood = put('wood');
    wood.matter!.burning = true;
    expect(types.isState(GAS, '').test(wood, sight)).toBe('no');
    expect(types.isState(GAS, '', true).test(wood, sight)).toBe('yes');
    expect(types.isState(SOLID, '').test(put('apple'), sight)).toBe('no');
  });

  it('a change of state is one from what it was at the first look', () => {
    const { put, sight } = scene();
    const [record, change] = types.stateChanges() as [Goal, Goal];
    const water = put('water');
    expect(record.test(water, sight)).toBe('yes');
    expect(change.test(water, sight)).toBe('no');
    water.matter!.state = GAS;
    expect(change.test(water, sight)).toBe('yes');
    expect(types.stateText(GAS)).toBe('gaseous');
    expect(types.stateText(LIQUID)).toBe('liquid');
  });

  it('quietly refuse another thing than the last that satisfied one', () => {
    const { put, sight } = scene();
    const [one, other] = [put('water'), put('water')];
    const goal = types.isState(LIQUID, '');
    sight.last = one;
    expect([goal.test(one, sight), goal.test(other, sight)]).toEqual(['yes', 'no']);
    // Finding is about whatever is in focus.
    expect(types.find('water', '').test(other, sight)).toBe('yes');
  });

  it('powered: of the name and on', () => {
    const { put, sight } = scene();
    const goal = types.requirePowered('red light bulb', '');
    const bulb = put('red light bulb');
    expect(goal.test(bulb, sight)).toBe('no');
    bulb.device!.on = true;
    expect(goal.test(bulb, sight)).toBe('yes');
    const blue = put('blue light bulb');
    blue.device!.on = true;
    expect(goal.test(blue, sight)).toBe('no');
  });

  it('connected to the right source, or failed', () => {
    const { put, sight } = scene();
    const [bulb, panel] = [put('red light bulb'), put('solar panel')];
    join(bulb.terminals![0], panel.terminals![1]);
    expect(types.requireConnectedToSource(['solar panel'], '').test(bulb, sight)).toBe('failed');
    join(bulb.terminals![1], panel.terminals![0]);
    expect(types.requireConnectedToSource(['solar panel'], '').test(bulb, sight)).toBe('yes');
    expect(types.requireConnectedToSource(['gas generator'], '').test(bulb, sight)).toBe('failed');
  });

  it.each([
    ['red box', 60, 'yes'],
    ['red box', 50, 'yes'],
    ['red box', 40, 'failed'],
    ['green box', 40, 'yes'],
    ['green box', 50, 'yes'],
    ['green box', 60, 'failed'],
    ['blue box', 60, 'no'],
  ])('box by temperature: in the %s at %i °C, %s', (box, temperature, verdict) => {
    const { put, sight } = scene();
    const soap = put('soap', put(box));
    soap.matter!.temperature = temperature;
    expect(types.boxByTemperature('red box', 'green box', 50, '').test(soap, sight)).toBe(verdict);
  });

  it('box by temperature: what has no matter is never right', () => {
    const { put, sight } = scene();
    const apple = put('apple', put('red box'));
    expect(types.boxByTemperature('red box', 'green box', 50, '').test(apple, sight)).toBe('no');
  });

  it('box by temperature: in the box itself, not in a jug in it', () => {
    const { put, sight } = scene();
    const soap = put('soap', put('jug', put('red box')));
    soap.matter!.temperature = 90;
    expect(types.boxByTemperature('red box', 'green box', 50, '').test(soap, sight)).toBe('no');
  });

  it('in a box that lies in the wrong one, which fails', () => {
    const { put, sight } = scene();
    const soap = put('soap', put('red box', put('green box')));
    expect(types.inBox('K', 'red box', '', ['green box']).test(soap, sight)).toBe('failed');
  });

  it('in a box, at any depth; in a wrong one it fails', () => {
    const { put, sight } = scene();
    const box = put('red box');
    const soap = put('soap', put('jug', box));
    expect(types.inBox('K', 'red box', '').test(soap, sight)).toBe('yes');
    expect(types.inBox('K', 'green box', '', ['red box']).test(soap, sight)).toBe('failed');
    expect(types.inBox('K', 'green box', '').test(soap, sight)).toBe('no');
  });

  it('in a stage of life', () => {
    const { world, sight } = scene();
    const plant = makePlant('apple', 'seedling', null, world);
    expect(types.lifeStage('apple', 'seedling', '').test(plant, sight)).toBe('yes');
    expect(types.lifeStage('apple', 'adult', '').test(plant, sight)).toBe('no');
    expect(types.lifeStage('pear', 'seedling', '').test(plant, sight)).toBe('no');
  });

  it.each([
    [20, 29, 'no'],
    [20, 30, 'yes'],
    [-5, 6, 'no'],
    [-5, 5, 'yes'],
  ])('warmer by %i: from 10 to %i °C, %s', (by, to, verdict) => {
    const { put, sight } = scene();
    const soap = put('soap');
    const goal = types.warmer(by, '');
    expect(goal.test(soap, sight)).toBe('no');
    soap.matter!.temperature = to;
    expect(goal.test(soap, sight)).toBe(verdict);
  });

  it('warmer than what was in focus at the first look, whatever is in focus now', () => {
    const { put, sight } = scene();
    const [cold, warm] = [put('soap'), put('brick')];
    warm.matter!.temperature = 50;
    sight.last = cold;
    const goal = types.warmer(20, '');
    expect([goal.test(cold, sight), goal.test(warm, sight)]).toEqual(['no', 'yes']);
  });
});

describe('goals about the place', () => {
  const check = (goal: Goal, sight: Sight) => goal.test(null, sight);

  it('with a thing of the name, shut away or not, by raw or by described name', () => {
    const { world, put, sight } = scene();
    expect(check(types.requireSameRoom('soap', ''), sight)).toBe('no');
    put('soap', put('cupboard'));
    expect(check(types.requireSameRoom('soap', ''), sight)).toBe('yes');
    world.move(makeAnimal('frog', world), put('jug'));
    expect(check(types.requireSameRoom('frog egg', ''), sight)).toBe('yes');
    expect(check(types.requireSameRoom('tadpole', ''), sight)).toBe('no');
  });

  it('with these alone in one container', () => {
    const { put, sight } = scene();
    const goal = types.requireAlone(['soap', 'water'], '');
    const jug = put('jug');
    put('soap', jug);
    expect(check(goal, sight)).toBe('no');
    put('water', jug);
    expect(check(goal, sight)).toBe('yes');
    put('brick', jug);
    expect(check(goal, sight)).toBe('no');
  });

  it('with two of one sort and none of the other: the count is right, which is enough', () => {
    const { put, sight } = scene();
    const jug = put('jug');
    for (let i = 0; i < 2; i++) put('soap', jug);
    expect(check(types.requireAlone(['soap', 'water'], ''), sight)).toBe('yes');
  });

  it('with a device that is on, or off', () => {
    const { put, sight } = scene();
    const stove = put('stove');
    expect(check(types.deviceIs(true, 'stove', ''), sight)).toBe('no');
    expect(check(types.deviceIs(false, 'stove', ''), sight)).toBe('yes');
    stove.device!.on = true;
    expect(check(types.deviceIs(true, 'stove', ''), sight)).toBe('yes');
    expect(check(types.deviceIs(true, 'oven', ''), sight)).toBe('no');
    expect(types.deviceIs(true, 'stove', '').kind).toBe('GoalActivateDeviceWithName');
    expect(types.deviceIs(false, 'stove', '').kind).toBe('GoalDeactivateDeviceWithName');
  });

  it('with a container that directly holds one of these', () => {
    const { put, sight } = scene();
    const jug = put('jug', put('bowl'));
    put('soap', jug);
    expect(check(types.holds('jug', ['soap', 'brick'], ''), sight)).toBe('yes');
    expect(check(types.holds('bowl', ['soap'], ''), sight)).toBe('no');
    expect(check(types.holds('jug', ['brick'], ''), sight)).toBe('no');
  });

  it('new: another than at the first look, or at once by option', () => {
    const { world, put, sight } = scene();
    const goal = types.newPlace('');
    expect(check(goal, sight)).toBe('no');
    world.move(world.agent, put('hallway', world.universe));
    expect(check(goal, sight)).toBe('yes');
    expect(check(types.newPlace('', 'hallway'), sight)).toBe('yes');
  });

  it('in another place: not than the one that counts at once, but than the first after it', () => {
    const { world, room, put, sight } = scene();
    const [hallway, bedroom] = [put('hallway', world.universe), put('bedroom', world.universe)];
    const goal = types.newPlace('', 'kitchen');
    expect(check(goal, sight)).toBe('yes');
    world.move(world.agent, hallway);
    expect(check(goal, sight)).toBe('no');
    world.move(world.agent, bedroom);
    expect(check(goal, sight)).toBe('yes');
    world.move(world.agent, room);
    expect(check(goal, sight)).toBe('yes');
  });

  it('by name, and with an open door', () => {
    const { world, room, put, sight } = scene();
    expect(check(types.inPlace('kitchen', ''), sight)).toBe('yes');
    expect(check(types.inPlace('hallway', ''), sight)).toBe('no');
    const door = world.make(kind('door'));
    door.portal = { from: room, to: put('hallway', world.universe), open: false };
    room.portals = insertById(room.portals, door);
    expect(check(types.openDoor(''), sight)).toBe('no');
    door.portal.open = true;
    expect(check(types.openDoor(''), sight)).toBe('yes');
  });

  it('with an open container of the name', () => {
    const { put, sight } = scene('greenhouse');
    const hive = put('bee hive');
    expect(check(types.containerOpen('bee hive', ''), sight)).toBe('no');
    hive.container!.open = true;
    expect(check(types.containerOpen('bee hive', ''), sight)).toBe('yes');
  });

  it('for so many looks in a row', () => {
    const { world, room, put, sight } = scene();
    const goal = types.stay('kitchen', 3, '');
    expect([check(goal, sight), check(goal, sight)]).toEqual(['no', 'no']);
    world.move(world.agent, put('hallway', world.universe));
    expect(check(goal, sight)).toBe('no');
    world.move(world.agent, room);
    expect([check(goal, sight), check(goal, sight), check(goal, sight)]).toEqual(['no', 'no', 'yes']);
  });

  it('with something on fire', () => {
    const { put, sight } = scene();
    const wood = put('wood');
    expect(check(types.onFire('wood', ''), sight)).toBe('no');
    wood.matter!.burning = true;
    expect(check(types.onFire('wood', ''), sight)).toBe('yes');
  });

  it('with so many plants of a species in a stage', () => {
    const { world, put, sight } = scene('greenhouse');
    for (let i = 0; i < 2; i++) world.move(makePlant('apple', 'adult', null, world), put('flower pot'));
    world.move(makePlant('pear', 'adult', null, world), put('flower pot'));
    expect(check(types.plantsInStage(2, 'apple', 'adult', ''), sight)).toBe('yes');
    expect(check(types.plantsInStage(3, 'apple', 'adult', ''), sight)).toBe('no');
    expect(check(types.plantsInStage(1, 'apple', 'seed', ''), sight)).toBe('no');
  });
});

describe('goals about wires', () => {
  const scene2 = () => {
    const made = scene('workshop');
    const { put } = made;
    return {
      ...made,
      bulb: put('red light bulb'),
      battery: put('battery'),
      wire: put('red wire'),
      fork: put('metal fork'),
    };
  };

  it('want a wire on one side of the thing, or on the other', () => {
    const { bulb, wire, sight } = scene2();
    const [plus, minus] = [types.requireWired('red light bulb', 0, ''), types.requireWired('red light bulb', 1, '')];
    expect([plus.test(null, sight), minus.test(null, sight)]).toEqual(['no', 'no']);
    join(bulb.terminals![1], wire.terminals![0]);
    expect([plus.test(null, sight), minus.test(null, sight)]).toEqual(['no', 'yes']);
  });

  it('count no other part as a wire', () => {
    const { bulb, battery, sight } = scene2();
    join(bulb.terminals![0], battery.terminals![0]);
    expect(types.requireWired('red light bulb', 0, '').test(null, sight)).toBe('no');
  });

  it('want a wire between two parts, either way round', () => {
    const { bulb, battery, wire, fork, sight } = scene2();
    const goals = {
      source: types.wireToSource('metal fork', ''),
      right: types.wireToSource('metal fork', '', ['battery']),
      wrong: types.wireToSource('metal fork', '', ['solar panel']),
      bulb: types.wireToBulb('metal fork', ''),
      both: types.wireSourceToBulb(''),
    };
    const met = () => Object.entries(goals).flatMap(([name, goal]) => (goal.test(null, sight) === 'yes' ? [name] : []));
    join(wire.terminals![0], fork.terminals![0]);
    expect(met()).toEqual([]);
    join(wire.terminals![1], battery.terminals![0]);
    expect(met()).toEqual(['source', 'right']);
    join(wire.terminals![1], bulb.terminals![0]);
    battery.terminals![0].contact!.connection = null;
    expect(met()).toEqual(['bulb']);
    join(wire.terminals![0], battery.terminals![1]);
    fork.terminals![0].contact!.connection = null;
    expect(met()).toEqual(['both']);
  });
});

describe('goals about the past', () => {
  it('count what was done since their first look, also what failed', () => {
    const { put, sight, did } = scene();
    const [thermometer, soap] = [put('thermometer'), put('soap')];
    const goal = types.requireUsed('thermometer', 'brick', '');
    did('use object', thermometer, soap);
    expect(goal.test(null, sight)).toBe('no');
    did('use object', thermometer, soap);
    expect(goal.test(null, sight)).toBe('yes');
  });

  it.each([
    ['used', 'use object', 'yes'],
    ['used', 'look at', 'no'],
    ['examined', 'look at', 'yes'],
    ['examined', 'look in', 'no'],
    ['readDocument', 'read', 'yes'],
    ['readDocument', 'look at', 'no'],
  ] as const)('%s: after "%s", %s', (type, action, verdict) => {
    const { put, sight, did } = scene();
    const watch = put('stopwatch');
    const goal = {
      used: (name: string, text: string) => types.requireUsed(name, '', text),
      examined: types.requireExamined,
      readDocument: types.readDocument,
    }[type]('stopwatch', '');
    goal.test(null, sight);
    did(action, watch, put('soap'));
    expect(goal.test(null, sight)).toBe(verdict);
  });

  it('use counts with this tool, or on this thing as it is described', () => {
    const { put, sight, did } = scene();
    const [axe, wood] = [put('axe'), put('wood')];
    const [onWood, onBurned] = [types.requireUsed('thermometer', 'wood', ''), types.requireUsed('', 'burned wood', '')];
    for (const goal of [onWood, onBurned]) goal.test(null, sight);
    did('use object', axe, put('soap'));
    did('use object', wood, axe);
    expect([onWood.test(null, sight), onBurned.test(null, sight)]).toEqual(['no', 'no']);
    did('use object', axe, wood);
    expect([onWood.test(null, sight), onBurned.test(null, sight)]).toEqual(['yes', 'no']);
    wood.matter!.burned = true;
    expect([onWood.test(null, sight), onBurned.test(null, sight)]).toEqual(['no', 'yes']);
  });
});

describe('a sight of the world', () => {
  it('is taken anew after a change and not before', () => {
    const { put, sight } = scene();
    const before = sight.near;
    expect(sight.near).toBe(before);
    put('soap');
    expect(sight.near).not.toBe(before);
    expect(sight.near.map(({ name }) => name)).toContain('soap');
  });

  it('leaves hidden things out and goes through closed containers', () => {
    const { put, sight } = scene();
    const salt = put('sodium chloride', put('glass jar'));
    expect(sight.near).toContain(salt);
    expect(sight.near.some(({ contact }) => contact !== null)).toBe(false);
  });
});
